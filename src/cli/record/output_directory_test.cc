// Where a recording's files go: fresh, private, and never on top of somebody's.
#include "cli/record/output_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

class OutputDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "output_directory_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    parent_ = pattern;
    const char* old = getenv("TMPDIR");
    old_tmpdir_ = old != nullptr ? old : "";
  }

  void TearDown() override {
    if (old_tmpdir_.empty())
      unsetenv("TMPDIR");
    else
      setenv("TMPDIR", old_tmpdir_.c_str(), 1);
    fs::remove_all(parent_);
  }

  static mode_t ModeOf(const std::string& path) {
    struct stat status {};

    return stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
  }

  std::string parent_;
  std::string old_tmpdir_;
};

TEST_F(OutputDirectoryTest, ARequestedDirectoryIsMadeForItsOwnerOnly) {
  const std::string path = parent_ + "/new";
  const Result<std::string> made = CreateOutputDirectory(path);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value(), path);
  EXPECT_EQ(ModeOf(path), 0700u);
}

TEST_F(OutputDirectoryTest, AnEmptyDirectoryIsUsedAsItIs) {
  const Result<std::string> made = CreateOutputDirectory(parent_);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value(), parent_);
}

TEST_F(OutputDirectoryTest, ADirectoryWithFilesIsRefusedAsAUsageError) {
  std::ofstream(parent_ + "/mine") << "x";
  const Result<std::string> made = CreateOutputDirectory(parent_);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(made.status().message(), "cannot use output directory " + parent_ +
                                         ": it is not empty; name another one with "
                                         "--output");
}

TEST_F(OutputDirectoryTest, AFileOfThatNameIsRefusedAndKept) {
  const std::string path = parent_ + "/file";
  std::ofstream(path) << "x";
  EXPECT_FALSE(CreateOutputDirectory(path).ok());
  EXPECT_EQ(fs::file_size(path), 1u);
}

TEST_F(OutputDirectoryTest, AMissingParentIsNamed) {
  const Result<std::string> made = CreateOutputDirectory(parent_ + "/no/such");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kIo);
  EXPECT_NE(made.status().message().find(parent_ + "/no/such"), std::string::npos);
}

TEST_F(OutputDirectoryTest, WithoutARequestEveryRunGetsAFreshOneAndTheLinkFollows) {
  setenv("TMPDIR", parent_.c_str(), 1);
  const Result<std::string> first = CreateOutputDirectory("");
  const Result<std::string> second = CreateOutputDirectory("");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first.value(), second.value());
  EXPECT_EQ(ModeOf(second.value()), 0700u);
  EXPECT_EQ(fs::read_symlink(parent_ + "/heap_profile-latest"), second.value());
}

TEST_F(OutputDirectoryTest, ALinkThatCannotBeReplacedDoesNotStopTheRecording) {
  setenv("TMPDIR", parent_.c_str(), 1);
  fs::create_directory(parent_ + "/heap_profile-latest");
  const Result<std::string> made = CreateOutputDirectory("");
  EXPECT_TRUE(made.ok());
  EXPECT_TRUE(fs::is_directory(fs::symlink_status(parent_ + "/heap_profile-latest")));
}

TEST_F(OutputDirectoryTest, ATemporaryDirectoryThatIsMissingIsNamed) {
  setenv("TMPDIR", (parent_ + "/gone").c_str(), 1);
  const Result<std::string> made = CreateOutputDirectory("");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find(parent_ + "/gone"), std::string::npos);
}

TEST_F(OutputDirectoryTest, RootUsesNoDirectoryThatOthersMayChange) {
  if (geteuid() != 0)
    GTEST_SKIP() << "what others may write to matters less to others";
  const std::string open_to_all = parent_ + "/open";
  ASSERT_EQ(mkdir(open_to_all.c_str(), 0700), 0);
  ASSERT_EQ(chmod(open_to_all.c_str(), 01777), 0);
  EXPECT_FALSE(CreateOutputDirectory(open_to_all).ok());
  EXPECT_FALSE(UseOutputDirectory(open_to_all).ok());
  setenv("TMPDIR", open_to_all.c_str(), 1);
  EXPECT_TRUE(CreateOutputDirectory("").ok());
  EXPECT_FALSE(fs::exists(fs::symlink_status(open_to_all + "/heap_profile-latest")));
  const std::string others = parent_ + "/others";
  ASSERT_EQ(mkdir(others.c_str(), 0700), 0);
  ASSERT_EQ(chown(others.c_str(), 4321, 4321), 0);
  EXPECT_FALSE(CreateOutputDirectory(others).ok());
}

}  // namespace
}  // namespace heapprofd
