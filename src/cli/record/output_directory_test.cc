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
  const Result<OutputDirectory> made = OutputDirectory::Create(path);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value().path(), path);
  EXPECT_EQ(ModeOf(path), 0700u);
}

TEST_F(OutputDirectoryTest, AnEmptyDirectoryIsUsedAsItIs) {
  const Result<OutputDirectory> made = OutputDirectory::Create(parent_);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value().path(), parent_);
}

TEST_F(OutputDirectoryTest, ADirectoryWithFilesIsRefusedAsAUsageError) {
  std::ofstream(parent_ + "/mine") << "x";
  const Result<OutputDirectory> made = OutputDirectory::Create(parent_);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(made.status().message(), "cannot use output directory " + parent_ +
                                         ": it is not empty; name another one with "
                                         "--output");
}

TEST_F(OutputDirectoryTest, AFileOfThatNameIsRefusedAndKept) {
  const std::string path = parent_ + "/file";
  std::ofstream(path) << "x";
  EXPECT_FALSE(OutputDirectory::Create(path).ok());
  EXPECT_EQ(fs::file_size(path), 1u);
}

TEST_F(OutputDirectoryTest, AMissingParentIsNamed) {
  const Result<OutputDirectory> made = OutputDirectory::Create(parent_ + "/no/such");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kIo);
  EXPECT_NE(made.status().message().find(parent_ + "/no/such"), std::string::npos);
}

TEST_F(OutputDirectoryTest, WithoutARequestEveryRunGetsAFreshOneAndTheLinkFollows) {
  setenv("TMPDIR", parent_.c_str(), 1);
  const Result<OutputDirectory> first = OutputDirectory::Create("");
  const Result<OutputDirectory> second = OutputDirectory::Create("");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first.value().path(), second.value().path());
  EXPECT_EQ(ModeOf(second.value().path()), 0700u);
  EXPECT_EQ(fs::read_symlink(parent_ + "/heap_profile-latest"), second.value().path());
}

TEST_F(OutputDirectoryTest, WhereNothingWasRecordedTheLinkLeadsToTheOneBefore) {
  setenv("TMPDIR", parent_.c_str(), 1);
  const fs::path link = parent_ + "/heap_profile-latest";
  const Result<OutputDirectory> none = OutputDirectory::Create("");
  ASSERT_TRUE(none.ok());
  none.value().Remove();
  EXPECT_FALSE(fs::exists(fs::symlink_status(link)));
  const Result<OutputDirectory> good = OutputDirectory::Create("");
  const Result<OutputDirectory> bad = OutputDirectory::Create("");
  ASSERT_TRUE(good.ok() && bad.ok());
  bad.value().Remove();
  EXPECT_EQ(fs::read_symlink(link), good.value().path());
  const Result<OutputDirectory> other = OutputDirectory::Create("");
  const Result<OutputDirectory> newest = OutputDirectory::Create("");
  ASSERT_TRUE(other.ok() && newest.ok());
  other.value().Remove();  // somebody else has begun meanwhile
  EXPECT_EQ(fs::read_symlink(link), newest.value().path());
}

TEST_F(OutputDirectoryTest, ALinkThatCannotBeReplacedDoesNotStopTheRecording) {
  setenv("TMPDIR", parent_.c_str(), 1);
  fs::create_directory(parent_ + "/heap_profile-latest");
  const Result<OutputDirectory> made = OutputDirectory::Create("");
  EXPECT_TRUE(made.ok());
  EXPECT_TRUE(fs::is_directory(fs::symlink_status(parent_ + "/heap_profile-latest")));
}

TEST_F(OutputDirectoryTest, ATemporaryDirectoryThatIsMissingIsNamed) {
  setenv("TMPDIR", (parent_ + "/gone").c_str(), 1);
  const Result<OutputDirectory> made = OutputDirectory::Create("");
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find(parent_ + "/gone"), std::string::npos);
}

TEST_F(OutputDirectoryTest, RootUsesNoDirectoryThatOthersMayChange) {
  if (geteuid() != 0)
    GTEST_SKIP() << "what others may write to matters less to others";
  const std::string open_to_all = parent_ + "/open";
  ASSERT_EQ(mkdir(open_to_all.c_str(), 0700), 0);
  ASSERT_EQ(chmod(open_to_all.c_str(), 01777), 0);
  EXPECT_FALSE(OutputDirectory::Create(open_to_all).ok());
  EXPECT_FALSE(OutputDirectory::Use(open_to_all).ok());
  setenv("TMPDIR", open_to_all.c_str(), 1);
  EXPECT_TRUE(OutputDirectory::Create("").ok());
  EXPECT_FALSE(fs::exists(fs::symlink_status(open_to_all + "/heap_profile-latest")));
  const std::string others = parent_ + "/others";
  ASSERT_EQ(mkdir(others.c_str(), 0700), 0);
  ASSERT_EQ(chown(others.c_str(), 4321, 4321), 0);
  EXPECT_FALSE(OutputDirectory::Create(others).ok());
}

TEST_F(OutputDirectoryTest, FilesGoToTheDirectoryThatWasMadeWhateverHasItsName) {
  const std::string path = parent_ + "/out";
  const Result<OutputDirectory> made = OutputDirectory::Create(path);
  ASSERT_TRUE(made.ok()) << made.status().message();
  fs::rename(path, parent_ + "/old");
  fs::create_directory(parent_ + "/victim");
  fs::create_directory_symlink("victim", path);
  const FilePlace place = made.value().Place("file");
  EXPECT_EQ(place.path, path + "/file");
  std::ofstream(place.at) << "x";
  std::ofstream(OutputDirectory(ScopedFd(dup(made.value().fd())), "").Place("other").at)
      << "x";
  EXPECT_TRUE(fs::exists(parent_ + "/old/file"));
  EXPECT_TRUE(fs::exists(parent_ + "/old/other"));
  made.value().Remove();
  EXPECT_TRUE(fs::is_empty(parent_ + "/victim"));
}

TEST_F(OutputDirectoryTest, ProgramsReachItAndTheirWordsNameThePath) {
  const std::string path = parent_ + "/out";
  const Result<OutputDirectory> made = OutputDirectory::Create(path);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value().PathForPrograms("file"), path + "/file");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(parent_.c_str(), 4321, 4321), 0);
  }
  const std::string reached = made.value().PathForPrograms("file");
  EXPECT_EQ(reached.starts_with("/proc/"), geteuid() == 0);
  const std::string own = made.value().Place("b").at;
  ASSERT_EQ(system(("echo x >" + reached).c_str()), 0);  // NOLINT(cert-env33-c)
  EXPECT_TRUE(fs::exists(path + "/file"));
  EXPECT_EQ(made.value().Told("cannot read " + reached + " and " + own + ": no"),
            "cannot read " + path + "/file and " + path + "/b: no");
}

TEST_F(OutputDirectoryTest, OneThatIsNotNeededIsRemovedWithTheTrace) {
  const Result<OutputDirectory> made = OutputDirectory::Create(parent_ + "/out/");
  ASSERT_TRUE(made.ok()) << made.status().message();
  std::ofstream(parent_ + "/out/raw-trace") << "x";
  made.value().RemoveIfEmpty();
  EXPECT_TRUE(fs::exists(parent_ + "/out"));
  made.value().Remove();
  EXPECT_FALSE(fs::exists(parent_ + "/out"));
}

TEST_F(OutputDirectoryTest, ALinkToAnEmptyDirectoryIsFollowedOnce) {
  fs::create_directory(parent_ + "/real");
  fs::create_directory_symlink("real", parent_ + "/link");
  const Result<OutputDirectory> used = OutputDirectory::Create(parent_ + "/link");
  ASSERT_TRUE(used.ok()) << used.status().message();
  fs::remove(parent_ + "/link");
  std::ofstream(used.value().Place("file").at) << "x";
  EXPECT_TRUE(fs::exists(parent_ + "/real/file"));
}

TEST_F(OutputDirectoryTest, RootMakesItWithAnotherUserAndFollowsNoLinkOfHis) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can have files of others";
  fs::create_directory(parent_ + "/victim");
  fs::create_directory(parent_ + "/his");
  fs::create_directory_symlink(parent_ + "/victim", parent_ + "/his/link");
  ASSERT_EQ(lchown((parent_ + "/his/link").c_str(), 4321, 4321), 0);
  ASSERT_EQ(chown((parent_ + "/his").c_str(), 4321, 4321), 0);
  EXPECT_TRUE(OutputDirectory::Create(parent_ + "/his/out").ok());
  for (const char* const path : {"/his/link", "/his/link/out"}) {
    EXPECT_FALSE(OutputDirectory::Create(parent_ + path).ok());
    EXPECT_FALSE(OutputDirectory::Use(parent_ + path).ok());
  }
  EXPECT_TRUE(fs::is_empty(parent_ + "/victim"));
}

}  // namespace
}  // namespace heapprofd
