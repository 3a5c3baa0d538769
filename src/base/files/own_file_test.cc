#include "base/files/own_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

class OwnFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "own_file_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    std::ofstream(directory_ / "victim") << "precious";
  }

  void TearDown() override { fs::remove_all(directory_); }

  std::string Victim() const {
    std::ifstream file(directory_ / "victim");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path directory_;
};

TEST_F(OwnFileTest, AFileIsMadeForItsOwnerAndEmptiedAgain) {
  const std::string path = directory_ / "new";
  ASSERT_TRUE(OpenForWriting(path).ok());
  std::ofstream(path) << "old";
  ASSERT_TRUE(OpenForWriting(path).ok());
  EXPECT_EQ(fs::file_size(path), 0u);
}

TEST_F(OwnFileTest, RootFollowsNoLinkThatSomebodyHasPut) {
  if (geteuid() != 0)
    GTEST_SKIP() << "others may follow their own links";
  fs::create_symlink(directory_ / "victim", directory_ / "link");
  EXPECT_FALSE(OpenForWriting((directory_ / "link").string()).ok());
  EXPECT_EQ(Victim(), "precious");
}

TEST_F(OwnFileTest, RootEmptiesNoFileOfAnotherUser) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can write to others' files";
  ASSERT_EQ(chown((directory_ / "victim").c_str(), 4321, 4321), 0);
  const auto file = OpenForWriting((directory_ / "victim").string());
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("belongs to user 4321"), std::string::npos);
  EXPECT_EQ(Victim(), "precious");
}

TEST_F(OwnFileTest, RootWaitsForNobodyWhoMayReadFromAPipe) {
  if (geteuid() != 0)
    GTEST_SKIP() << "others may wait for themselves";
  const std::string path = directory_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(OpenForWriting(path).status().message().find(
                "it is a pipe from which nobody reads"),
            std::string::npos);
  const ScopedFd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto file = OpenForWriting(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(fcntl(file.value().get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(OwnFileTest, RootEmptiesNoFileWithNamesThatOthersMayHaveMade) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can write to others' files";
  fs::create_hard_link(directory_ / "victim", directory_ / "name");
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  const auto file = OpenForWriting((directory_ / "name").string());
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find(
                "it has other names, one of which another user may have made"),
            std::string::npos);
  EXPECT_EQ(Victim(), "precious");
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
  EXPECT_TRUE(OpenForWriting((directory_ / "name").string()).ok());
}

TEST_F(OwnFileTest, ADirectoryThatOthersMayChangeIsNotPrivate) {
  const ScopedFd open_one(open(directory_.c_str(), O_PATH | O_CLOEXEC));
  EXPECT_TRUE(IsPrivateDirectory(open_one.get()));
  ASSERT_EQ(chmod(directory_.c_str(), 01777), 0);
  EXPECT_TRUE(IsOwnDirectory(directory_));
  EXPECT_FALSE(IsPrivateDirectory(open_one.get()));
  EXPECT_FALSE(IsOwnDirectory(directory_ / "victim"));
  EXPECT_FALSE(IsOwnDirectory("/nowhere"));
}

TEST_F(OwnFileTest, OnlyARegularFileIsOpenedToBeRead) {
  fs::create_symlink("victim", directory_ / "link");
  fs::create_symlink("/dev/zero", directory_ / "device");
  ASSERT_EQ(mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  const ScopedFd writer(open((directory_ / "pipe").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(OpenRegular(directory_ / "victim").valid());
  EXPECT_TRUE(OpenRegular(directory_ / "link").valid());
  EXPECT_FALSE(OpenRegular(directory_ / "link", O_NOFOLLOW).valid());
  EXPECT_EQ(errno, ELOOP);
  for (const fs::path& other : {directory_ / "device", directory_ / "pipe", directory_,
                                fs::path("/proc/self/fd/0"), directory_ / "none"})
    EXPECT_FALSE(OpenRegular(other).valid()) << other;
}

}  // namespace
}  // namespace heapprofd
