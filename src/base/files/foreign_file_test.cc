#include "base/files/foreign_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/files/file_opener_process.h"

namespace heapprofd {
namespace {

class ForeignFileTest : public testing::Test {
 protected:
  ForeignFileTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "foreign_file_XXXXXX";
    directory_ = mkdtemp(pattern.data());
    path_ = directory_ + "/file";
    std::ofstream(path_) << "contents";
  }

  ~ForeignFileTest() override { std::filesystem::remove_all(directory_); }

  static ForeignFile Open(const ForeignRequest& request) {
    return OpenForeign(request, kOwnPatienceNs);
  }

  static std::string Read(const ForeignFile& file) {
    std::array<char, 64> bytes{};
    const ssize_t got = pread(file.fd.get(), bytes.data(), bytes.size(), 0);
    return std::string(bytes.data(), got > 0 ? static_cast<size_t>(got) : 0);
  }

  struct stat StatusOf(const std::string& path) const {
    struct stat status {};

    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status;
  }

  std::string directory_;
  std::string path_;
};

TEST_F(ForeignFileTest, OpensAFileThatAnybodyMayHaveMade) {
  const ForeignFile file = Open({.paths = {path_}});
  ASSERT_TRUE(file.fd.valid());
  EXPECT_EQ(Read(file), "contents");
  EXPECT_FALSE(file.is_copy);
  EXPECT_EQ(file.size, 8);
  EXPECT_EQ(file.inode, StatusOf(path_).st_ino);
  EXPECT_EQ(file.owner, geteuid());
}

TEST_F(ForeignFileTest, OpensAFileOfRootsAtOnce) {
  const std::string path = "/etc/passwd";
  const struct stat status = StatusOf(path);
  const ForeignRequest request{
      .paths = {path}, .inode = status.st_ino, .device = status.st_dev};
  EXPECT_TRUE(OpenForeign(request, /*patience_ns=*/0).fd.valid());
}

TEST_F(ForeignFileTest, TakesTheFirstThatIsTheFile) {
  std::ofstream(directory_ + "/other") << "other";
  ForeignRequest request;
  request.paths = {directory_ + "/none", directory_ + "/other", path_};
  request.inode = StatusOf(path_).st_ino;
  EXPECT_EQ(Read(Open(request)), "contents");
}

TEST_F(ForeignFileTest, OpensRegularFilesOnly) {
  const std::string fifo = directory_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, directory_, std::string("/dev/null")}) {
    const ForeignFile file = Open({.paths = {path}});
    EXPECT_FALSE(file.fd.valid()) << path;
    EXPECT_FALSE(file.is_late) << path;
  }
}

TEST_F(ForeignFileTest, SaysThatThereIsNone) {
  for (const char* path :
       {"/no_such_directory/file", "/etc/no_such_file", "", "relative"})
    EXPECT_FALSE(Open({.paths = {path}}).fd.valid()) << path;
}

TEST_F(ForeignFileTest, LinksLeadNowhereOutOfTheRoot) {
  ASSERT_EQ(symlink("/etc/passwd", (directory_ + "/link").c_str()), 0);
  const ScopedFd root(open(directory_.c_str(), O_PATH | O_CLOEXEC));
  ForeignRequest request;
  request.root = root.get();
  request.paths = {"/file"};
  EXPECT_EQ(Read(Open(request)), "contents");
  request.paths = {"/link"};
  EXPECT_FALSE(Open(request).fd.valid());
}

TEST_F(ForeignFileTest, IsNotWaitedForTooLong) {
  if (geteuid() != 0)
    GTEST_SKIP() << "an ordinary user's own files are opened here";
  const ForeignRequest request{.paths = {path_}, .process = getpid()};
  EXPECT_TRUE(OpenForeign(request, /*patience_ns=*/0).is_late);
}

// Finishers and workers are forked while other threads open files.
TEST_F(ForeignFileTest, AChildThatIsForkedMeanwhileCanOpen) {
  constexpr int kChildren = 200;
  PrepareForeignFiles();
  std::atomic<bool> is_over = false;
  const auto open_on = [&] {
    while (!is_over)
      OpenForeign({.paths = {"/etc/passwd"}}, /*patience_ns=*/0);
  };
  std::thread threads[] = {std::thread(open_on), std::thread(open_on)};
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(OpenForeign({.paths = {"/etc/passwd"}}, /*patience_ns=*/0).fd.valid() ? 0
                                                                                  : 1);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  is_over = true;
  for (std::thread& thread : threads)
    thread.join();
}

TEST_F(ForeignFileTest, NobodyElsePaysForTheFilesOfAProcessThatIsGone) {
  EXPECT_EQ(UserOf(getpid()).id, getuid());
  EXPECT_NE(UserOf(INT32_MAX - 1).id, 0u);  // more than the kernel ever gives
  EXPECT_EQ(UserOf(INT32_MAX - 1).id, UserOf(0).id);
  EXPECT_FALSE(UserOf(getpid()).is_elsewhere);
  EXPECT_FALSE(UserOf(0).is_elsewhere);
  EXPECT_TRUE(UserOf(INT32_MAX - 1).is_elsewhere);
}

// Who has made us wait is not waited for again for a while; nobody else is concerned.
TEST_F(ForeignFileTest, EachUserWaitsForHimself) {
  if (geteuid() != 0)
    GTEST_SKIP() << "an ordinary user's own files are opened here";
  constexpr uid_t kSlow = 12345;
  constexpr uid_t kOther = 12346;
  ForeignRequest request{.paths = {path_}};
  request.user = {.id = kSlow};
  constexpr uint64_t kPatienceNs = 1'000'000'000;  // and twenty times as long a pause
  const FileOpenerProcess opener;
  ASSERT_TRUE(opener.Stop());
  EXPECT_TRUE(OpenForeign(request, kPatienceNs).is_late);
  opener.Continue();
  EXPECT_TRUE(Open(request).is_late);
  request.user = {.id = kOther};
  EXPECT_TRUE(Open(request).fd.valid());
}

// As at the end of a recording, whose looks in between could not wait.
TEST_F(ForeignFileTest, WhoHasTimeWaitsForAUserWhoWasSlow) {
  if (geteuid() != 0)
    GTEST_SKIP() << "an ordinary user's own files are opened here";
  ForeignRequest request{.paths = {path_}};
  request.user = {.id = 12347};
  constexpr uint64_t kPatienceNs = 10'000'000;  // and a pause of 200 ms
  {
    const FileOpenerProcess opener;
    ASSERT_TRUE(opener.Stop());
    EXPECT_TRUE(OpenForeign(request, kPatienceNs).is_late);
    opener.Continue();
  }
  EXPECT_TRUE(OpenForeign(request, 6 * kOwnPatienceNs).fd.valid());
}

// It is there, and is to be looked at again.
TEST_F(ForeignFileTest, WhatCannotEvenBeAskedForIsLate) {
  if (geteuid() != 0)
    GTEST_SKIP() << "an ordinary user's own files are opened here";
  const FileOpenerProcess opener;
  ASSERT_TRUE(opener.Stop());
  constexpr uid_t kMany = 2000;  // more than a socket takes
  for (uid_t user = 1; user <= kMany; ++user)
    ASSERT_TRUE(OpenForeign({.paths = {path_}, .user = GuardedUser{.id = user}},
                            /*patience_ns=*/1)
                    .is_late)
        << user;
  opener.Continue();
}

}  // namespace
}  // namespace heapprofd
