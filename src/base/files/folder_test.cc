// Where root is led by paths that others may change.
#include "base/files/folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/fd_path.h"
#include "base/files/new_file.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kLinksOwner = 4321;

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(base_.data()), nullptr);
    fs::create_directories(base_ + "/victim/below");
    fs::create_directory(base_ + "/mallory");
    fs::create_directory(base_ + "/mallory/own");
  }

  void TearDown() override { fs::remove_all(base_); }

  void GiveToMallory() const {
    for (const auto& entry : fs::recursive_directory_iterator(base_ + "/mallory"))
      ASSERT_EQ(lchown(entry.path().c_str(), kLinksOwner, kLinksOwner), 0);
    ASSERT_EQ(chown((base_ + "/mallory").c_str(), kLinksOwner, kLinksOwner), 0);
  }

  static ino_t InodeOf(const std::string& path) {
    struct stat status {};

    return stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
  }

  static ino_t Reached(const std::string& path) {
    const Result<ScopedFd> folder = OpenFolder(path, "cannot");
    return folder.ok() ? InodeOf(FdPath(folder.value().get())) : 0;
  }

  std::string base_ = testing::TempDir() + "folder_test_XXXXXX";
};

TEST_F(FolderTest, LinksOfOnesOwnLeadWhereTheKernelSaysTheyDo) {
  fs::create_directory_symlink(base_ + "/victim", base_ + "/absolute");
  fs::create_directory_symlink("../victim/./below/..", base_ + "/mallory/relative");
  const ino_t victim = InodeOf(base_ + "/victim");
  const ino_t below = InodeOf(base_ + "/victim/below");
  EXPECT_EQ(Reached(base_ + "/absolute"), victim);
  EXPECT_EQ(Reached(base_ + "//absolute/below/"), below);
  EXPECT_EQ(Reached(base_ + "/mallory/relative"), victim);
  EXPECT_EQ(Reached(base_ + "/mallory/relative/../absolute/below"), below);
  const Result<ScopedFd> open = OpenFolder(base_ + "/victim", "cannot");
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(Reached(FdPath(open.value().get()) + "/below"), below);
  EXPECT_EQ(Reached("/"), InodeOf("/"));
}

TEST_F(FolderTest, WhatIsNoDirectoryIsSaidByItsCause) {
  fs::create_directory_symlink("round", base_ + "/round");
  const auto said = [this](const std::string& name) {
    return OpenFolder(base_ + name, "cannot go").status().message();
  };
  EXPECT_EQ(said("/none/below"), "cannot go: No such file or directory");
  EXPECT_EQ(said("/round"), "cannot go: Too many levels of symbolic links");
  std::fclose(std::fopen((base_ + "/file").c_str(), "w"));
  EXPECT_EQ(said("/file"), "cannot go: Not a directory");
  EXPECT_EQ(said("/file/below"), "cannot go: Not a directory");
}

TEST_F(FolderTest, RootFollowsLinksOfOthersToWhatIsTheirs) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can have files of others";
  fs::create_directory_symlink("own", base_ + "/mallory/link");
  GiveToMallory();
  EXPECT_EQ(Reached(base_ + "/mallory/link"), InodeOf(base_ + "/mallory/own"));
  // What root has made there is reached by it, too.
  fs::create_directory(base_ + "/mallory/own/roots");
  EXPECT_EQ(Reached(base_ + "/mallory/link/roots"),
            InodeOf(base_ + "/mallory/own/roots"));
}

TEST_F(FolderTest, RootFollowsNoLinkOfItsOwnThatAnotherMayHavePutThere) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can have files of others";
  GiveToMallory();
  fs::create_directory_symlink(base_ + "/victim", base_ + "/mallory/renamed");
  EXPECT_EQ(Reached(base_ + "/mallory/renamed"), 0u);
  EXPECT_FALSE(IsUnalterable(base_ + "/mallory/missing"));
  EXPECT_TRUE(IsUnalterable(base_ + "/victim/missing"));
}

TEST_F(FolderTest, RootFollowsNoLinksOfOthersToWhatIsNotTheirs) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can have files of others";
  fs::create_directory_symlink(base_ + "/victim", base_ + "/mallory/link");
  fs::create_directory_symlink("mallory/link", base_ + "/mine");
  GiveToMallory();
  for (const char* const path : {"/mallory/link", "/mallory/link/below", "/mine"}) {
    EXPECT_EQ(OpenFolder(base_ + path, "cannot create it").status().message(),
              "cannot create it: the link link on the way there belongs to user 4321, "
              "and what it leads to does not; give the path without it");
    EXPECT_FALSE(NewFile::Create(base_ + path + "/file").ok());
  }
}

TEST_F(FolderTest, AFileAppearsInTheDirectoryThatWasLookedUp) {
  Result<NewFile> file = NewFile::Create(base_ + "/mallory/own/file");
  ASSERT_TRUE(file.ok());
  fs::rename(base_ + "/mallory/own", base_ + "/mallory/moved");
  fs::create_directory_symlink(base_ + "/victim", base_ + "/mallory/own");
  ASSERT_TRUE(file.value().Appear().ok());
  EXPECT_TRUE(fs::exists(base_ + "/mallory/moved/file"));
  EXPECT_FALSE(fs::exists(base_ + "/victim/file"));
}

TEST_F(FolderTest, APathIsSplitBeforeItsLastPart) {
  EXPECT_EQ(Split("a/b").folder, "a/");
  EXPECT_EQ(Split("a/b").name, "b");
  EXPECT_EQ(Split("b").folder, ".");
  EXPECT_EQ(Split("/b").folder, "/");
  EXPECT_EQ(Split("a/").name, ".");
}

TEST_F(FolderTest, WhatOthersMayRenameIsNotUnalterable) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can have files of others";
  EXPECT_TRUE(IsUnalterable("/"));
  EXPECT_TRUE(IsUnalterable(base_ + "/victim/below"));
  ASSERT_EQ(chmod((base_ + "/victim").c_str(), 0777), 0);
  EXPECT_FALSE(IsUnalterable(base_ + "/victim/below"));
  ASSERT_EQ(chmod((base_ + "/victim").c_str(), 01777), 0);
  EXPECT_TRUE(IsUnalterable(base_ + "/victim/below"));
  fs::create_directory_symlink("victim", base_ + "/link");
  EXPECT_TRUE(IsUnalterable(base_ + "/link"));
  fs::create_directory_symlink("../victim", base_ + "/mallory/link");
  GiveToMallory();
  ASSERT_EQ(lchown((base_ + "/mallory/link").c_str(), 0, 0), 0);
  EXPECT_FALSE(IsUnalterable(base_ + "/mallory/link"));
  EXPECT_FALSE(IsUnalterable(base_ + "/mallory/../victim"));
  ASSERT_EQ(lchown((base_ + "/link").c_str(), kLinksOwner, kLinksOwner), 0);
  EXPECT_FALSE(IsUnalterable(base_ + "/link"));
  EXPECT_FALSE(IsUnalterable(base_ + "/mallory"));
  EXPECT_FALSE(IsUnalterable(base_ + "/mallory/none"));
}

}  // namespace
}  // namespace heapprofd
