#include "hotspot/dump_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

class DumpPipeTest : public testing::Test {
 protected:
  DumpPipeTest() {
    std::string name = fs::temp_directory_path() / "pipe_XXXXXX";
    root_ = mkdtemp(name.data());
    temporary_ = ScopedFd(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }

  ~DumpPipeTest() override { fs::remove_all(root_); }

  std::string root_;
  ScopedFd temporary_;
};

TEST_F(DumpPipeTest, FilesBesideItAreCountedAndRemovedWithIt) {
  constexpr size_t kBytes = 100'000;
  Result<DumpPipe> pipe = DumpPipe::Create(temporary_.get(), "ours");
  ASSERT_TRUE(pipe.ok()) << pipe.status().message();
  EXPECT_EQ(pipe.value().BytesBeside(), 0u);
  std::ofstream(root_ + "/ours/dump.hprof.p0") << std::string(kBytes, 'x');
  ASSERT_EQ(symlink("/etc/passwd", (root_ + "/ours/link").c_str()), 0);
  EXPECT_GE(pipe.value().BytesBeside(), kBytes);
  EXPECT_LT(pipe.value().BytesBeside(), 2 * kBytes);
  EXPECT_TRUE(pipe.value().Remove().ok());
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(DumpPipeTest, WhatCannotBeRemovedIsSaid) {
  Result<DumpPipe> pipe = DumpPipe::Create(temporary_.get(), "ours");
  ASSERT_TRUE(pipe.ok());
  fs::create_directories(root_ + "/ours/dump.hprof.p0/deep");
  EXPECT_EQ(pipe.value().Remove().message(),
            "its /tmp/ours cannot be removed: Directory not empty");
}

TEST_F(DumpPipeTest, WhatAKilledOneHasLeftIsRemoved) {
  EXPECT_TRUE(DumpPipe::RemoveLeft(temporary_.get(), "ours").ok());
  fs::create_directory(root_ + "/ours");
  ASSERT_EQ(mkfifo((root_ + "/ours/dump.hprof").c_str(), 0600), 0);
  EXPECT_TRUE(DumpPipe::RemoveLeft(temporary_.get(), "ours").ok());
  EXPECT_TRUE(fs::is_empty(root_));
}

// By somebody else: it is his, not ours.
TEST_F(DumpPipeTest, ALinkInItsPlaceLeadsNowhere) {
  fs::create_directory(root_ + "/his");
  std::ofstream(root_ + "/his/file") << "his";
  fs::create_directory_symlink(root_ + "/his", root_ + "/ours");
  EXPECT_FALSE(DumpPipe::RemoveLeft(temporary_.get(), "ours").ok());
  EXPECT_EQ(DumpPipe::Create(temporary_.get(), "ours").status().message(),
            "a directory in its /tmp cannot be made: File exists");
  EXPECT_TRUE(fs::exists(root_ + "/his/file"));
}

}  // namespace
}  // namespace heapprofd
