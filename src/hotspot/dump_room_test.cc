#include "hotspot/dump_room.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

class DumpRoomTest : public testing::Test {
 protected:
  DumpRoomTest() {
    std::string name = fs::temp_directory_path() / "groups_XXXXXX";
    root_ = mkdtemp(name.data());
  }

  ~DumpRoomTest() override { fs::remove_all(root_); }

  void Group(const std::string& path, const std::string& limit, const std::string& used) {
    fs::create_directories(root_ + path);
    std::ofstream(root_ + path + "/memory.max") << limit << "\n";
    std::ofstream(root_ + path + "/memory.current") << used << "\n";
  }

  std::string root_;
};

TEST_F(DumpRoomTest, TheTightestGroupOnTheWayUpCounts) {
  Group("/service", "1000", "400");
  Group("/service/java", "900", "100");
  Group("/other", "10", "10");
  EXPECT_EQ(RoomInGroups(root_, "0::/service/java\n"), 600u);
  EXPECT_EQ(RoomInGroups(root_, "4:memory:/other\n0::/service\n"), 600u);
}

TEST_F(DumpRoomTest, GroupsOfTheFirstVersionCountAsWell) {
  for (const std::string path : {"/memory", "/memory/service"}) {
    fs::create_directories(root_ + path);
    std::ofstream(root_ + path + "/memory.limit_in_bytes")
        << (path == "/memory" ? "900\n" : "9223372036854771712\n");
    std::ofstream(root_ + path + "/memory.usage_in_bytes") << "100\n";
  }
  EXPECT_EQ(RoomInGroups(root_, "5:cpu:/x\n4:memory:/service\n0::/\n"), 800u);
  EXPECT_EQ(RoomInGroups(root_, "4:memory:/docker/of-the-host\n"), 800u);
}

TEST_F(DumpRoomTest, AGroupOverItsLimitHasNoRoom) {
  Group("/service", "1000", "1200");
  EXPECT_EQ(RoomInGroups(root_, "0::/service\n"), 0u);
}

TEST_F(DumpRoomTest, WithoutLimitsThereIsNone) {
  Group("/service", "max", "1200");
  for (const char* cgroups :
       {"0::/service\n", "0::/\n", "0::/missing\n", "1:cpu:/\n", ""})
    EXPECT_EQ(RoomInGroups(root_, cgroups), UINT64_MAX) << cgroups;
}

TEST_F(DumpRoomTest, RoomIsLessThanAllThereIs) {
  EXPECT_GT(RoomInMemory("self"), 0u);
  EXPECT_LT(RoomInMemory("self"), UINT64_MAX);
  const ScopedFd file(open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_LT(RoomOnDisk(file.get()), fs::space(root_).available);
}

}  // namespace
}  // namespace heapprofd
