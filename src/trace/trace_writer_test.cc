#include "trace/trace_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/test_limits.h"
#include "trace/test_profile.h"

namespace heapprofd {
namespace {

class TraceWriterTest : public ::testing::Test {
 protected:
  TraceWriterTest() {
    std::string pattern = "/tmp/trace_writer_test_XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }

  ~TraceWriterTest() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return directory_ + "/raw-trace"; }

  TraceWriter Create() {
    Result<TraceFile> file = TraceFile::Create(path());
    EXPECT_TRUE(file.ok());
    return TraceWriter(std::move(file).value());
  }

  // Serialized packets of the file.
  std::vector<std::string> Packets() const {
    std::ifstream file(path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return PacketsOf(bytes);
  }

  std::string directory_;
};

TEST_F(TraceWriterTest, EndlessNamesStayInSmallPackets) {
  TargetProfile profile = ProfileWith(3);
  profile.mappings[0].path = "/" + std::string(size_t{1} << 20, 'x');
  for (Frame& frame : profile.frames)
    frame.lines.assign(
        20,
        {std::string(size_t{1} << 20, 'f'), {}, std::string(size_t{1} << 20, '/'), 1});
  TraceWriter writer = Create();
  ASSERT_TRUE(writer.WriteHeader({}).ok());
  ASSERT_TRUE(writer.WriteDump(profile, 0, {}).ok());
  ASSERT_TRUE(writer.WriteModuleSymbols(profile, NamedModules::kWithBuildId).ok());
  ASSERT_TRUE(writer.Finish().ok());
  EXPECT_GT(Packets().size(), 5u);
  for (const std::string& packet : Packets())
    EXPECT_LT(packet.size(), 500'000u);
}

TEST_F(TraceWriterTest, ATraceInMemoryHasTheSameBytes) {
  const TargetProfile profile = ProfileWith(40);
  const auto write = [&](TraceWriter& writer) {
    ASSERT_TRUE(writer.WriteDump(profile, 0, {}).ok());
    ASSERT_TRUE(writer.Finish().ok());
  };
  TraceWriter on_disk = Create();
  write(on_disk);
  TraceWriter in_memory(TraceFile::InMemory());
  write(in_memory);
  EXPECT_FALSE(on_disk.file().is_in_memory());
  ASSERT_TRUE(in_memory.file().is_in_memory());
  EXPECT_EQ(in_memory.file().bytes().size(), std::filesystem::file_size(path()));
}

TEST_F(TraceWriterTest, AnExistingFileIsNotOverwritten) {
  std::ofstream(path()) << "mine";
  const Result<TraceFile> file = TraceFile::Create(path());
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("cannot create " + path()), std::string::npos);
}

TEST_F(TraceWriterTest, ItIsReadByWhateverNameItHasAndErrorsNameItsOwn) {
  Result<TraceFile> file = TraceFile::Create(path());
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(path());
  EXPECT_TRUE(file.value().OpenToRead().ok());
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP();
  const ScopedLimit none(RLIMIT_NOFILE, 0);
  EXPECT_EQ(file.value().OpenToRead().status().message(),
            "cannot open trace " + path() + ": Too many open files; raise ulimit -n");
}

TEST_F(TraceWriterTest, ALinkInPlaceOfTheFileIsNotFollowed) {
  std::filesystem::create_symlink("/dev/full", path());
  EXPECT_FALSE(TraceFile::Create(path()).ok());
}

}  // namespace
}  // namespace heapprofd
