#include "base/files/guarded_read.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/files/late_user.h"
#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

constexpr GuardedUser kMallory{.id = 61001};
constexpr GuardedUser kAlice{.id = 61002};

class GuardedReadTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "guarded-XXXXXX";
    ScopedFd(mkstemp(path_.data()));
    std::ofstream(path_) << "some text";
  }

  void TearDown() override { std::filesystem::remove(path_); }

  GuardedText ReadFor(const GuardedUser& user, size_t limit = 100) const {
    return ReadGuarded(path_, user, limit, kLongReadNs);
  }

  std::string path_;
};

TEST_F(GuardedReadTest, WhatCanBeReadIsRead) {
  EXPECT_EQ(ReadFor(kMallory).text, "some text");
  EXPECT_EQ(ReadFor(kMallory, 4).text, "some");
  const GuardedText none = ReadGuarded(path_ + "-none", kMallory, 4, kLongReadNs);
  EXPECT_EQ(none.text, "");
  EXPECT_EQ(none.error, ENOENT);
  EXPECT_FALSE(none.is_late);
}

TEST_F(GuardedReadTest, WhoMakesUsWaitIsLeftAndOthersAreRead) {
  const uint64_t before = LateReads();
  const LateUser mallory(kMallory);
  EXPECT_TRUE(mallory.is_late());
  EXPECT_TRUE(ReadFor(kMallory).is_late);
  EXPECT_EQ(ReadFor(kMallory).text, "");
  EXPECT_EQ(LateReads(), before + 3);
  EXPECT_EQ(ReadFor(kAlice).text, "some text");
  EXPECT_TRUE(mallory.Release());
}

// One user may have as many ids there as he likes.
TEST_F(GuardedReadTest, UsersOfOtherNameSpacesLeavePlacesToOurs) {
  std::deque<LateUser> late;
  constexpr uid_t kFirst = 100'000;
  for (uid_t id = kFirst; id < kFirst + 20; ++id)
    late.emplace_back(GuardedUser{.id = id, .is_elsewhere = true});
  EXPECT_TRUE(ReadFor({.id = kFirst + 200, .is_elsewhere = true}).is_late);
  EXPECT_EQ(ReadFor(kAlice).text, "some text");
  // Each is to be read again before the next can be.
  while (!late.empty())
    late.pop_front();
  EXPECT_EQ(ReadFor({.id = kFirst + 200, .is_elsewhere = true}).text, "some text");
}

// The threads that hang are its parent's.
TEST_F(GuardedReadTest, AForkedChildReadsAnew) {
  const LateUser mallory(kMallory);
  const pid_t child = fork();
  if (child == 0)
    _exit(ReadFor(kMallory).text == "some text" ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(GuardedReadTest, ItsOwnProcessIsReadAsItIs) {
  EXPECT_NE(ReadMemoryFile(getpid(), "cmdline", 4096).text.find("base_tests"),
            std::string::npos);
}

TEST_F(GuardedReadTest, LinksOfAProcessAreReadToo) {
  EXPECT_EQ(ReadProcessLink(getpid(), "exe").text,
            std::filesystem::read_symlink("/proc/self/exe"));
  EXPECT_EQ(ReadProcessLink(getpid(), "none").error, ENOENT);
  const std::shared_ptr<const ScopedFd> root = OpenProcessDirectory(getpid(), "root");
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(faccessat(root->get(), "proc", F_OK, 0), 0);
  EXPECT_EQ(OpenProcessDirectory(getpid(), "exe"), nullptr);
}

TEST_F(GuardedReadTest, WhatIsMadeOfFilesIsAsked) {
  EXPECT_EQ(AskAbout(getpid(), [] { return std::string("an answer"); }).text,
            "an answer");
}

TEST_F(GuardedReadTest, OfAProcessThatIsGoneNothingIsRead) {
  const pid_t child = fork();
  if (child == 0)
    _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const GuardedText text = ReadMemoryFile(child, "cmdline", 4096);
  EXPECT_EQ(text.text, "");
  EXPECT_EQ(text.error, ESRCH);
}

TEST_F(GuardedReadTest, WhoIsOfAnotherUserNameSpaceIsTold) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool is_elsewhere = unshare(CLONE_NEWUSER) == 0;
    if (write(ready[1], is_elsewhere ? "y" : "n", 1) == 1)
      pause();
    _exit(1);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  const std::optional<GuardedUser> user = GuardedUserOf(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(GuardedUserOf(getpid()).value().is_elsewhere);
  EXPECT_FALSE(IsInOurUserNamespace(child));
  if (answer != 'y')
    GTEST_SKIP() << "no user name space can be made here";
  EXPECT_TRUE(user && user->is_elsewhere);
}

TEST_F(GuardedReadTest, WithoutADescriptorThatIsTheCause) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    setrlimit(RLIMIT_NOFILE, &none);
    _exit(ReadMemoryFile(getpid(), "maps", 4096).error == EMFILE ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(GuardedReadTest, ProcessesOfOtherUsersAreReadUnderGuard) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can make a process of another user";
  const ProcessOfUser process(kMallory.id);
  ASSERT_TRUE(process.is_ready());
  MemoryFile maps(process.pid(), "maps");
  EXPECT_NE(maps.Read(4096, kLongReadNs).text, "");
  const LateUser mallory(kMallory);
  EXPECT_TRUE(ReadMemoryFile(process.pid(), "cmdline", 4096, kLongReadNs).is_late);
  EXPECT_TRUE(maps.Read(4096, kLongReadNs).is_late);
  EXPECT_TRUE(ReadProcessLink(process.pid(), "exe", kLongReadNs).is_late);
  EXPECT_TRUE(AskAbout(process.pid(), [] { return std::string("an answer"); }).is_late);
  EXPECT_EQ(OpenProcessDirectory(process.pid(), "root", kLongReadNs), nullptr);
  ASSERT_TRUE(mallory.Release());
  EXPECT_FALSE(ReadMemoryFile(process.pid(), "cmdline", 4096, kLongReadNs).text.empty());
  EXPECT_NE(maps.Read(4096, kLongReadNs).text, "");
  EXPECT_FALSE(ReadProcessLink(process.pid(), "exe", kLongReadNs).text.empty());
  EXPECT_NE(OpenProcessDirectory(process.pid(), "root", kLongReadNs), nullptr);
}

// Beyond all patience; the processor is busy, as far as others can see.
std::string AnswerAfterWork() {
  const uint64_t end_ns = MonotonicNs() + 5 * kReadPatienceNs;
  while (MonotonicNs() < end_ns) {
  }
  return "an answer";
}

TEST_F(GuardedReadTest, ABusyMachineIsNoReasonToBeLate) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can make a process of another user";
  const ProcessOfUser process(kMallory.id);
  ASSERT_TRUE(process.is_ready());
  EXPECT_EQ(AskAbout(process.pid(), AnswerAfterWork).text, "an answer");
  std::array<int, 2> never{};
  ASSERT_EQ(pipe(never.data()), 0);
  EXPECT_TRUE(AskAbout(process.pid(), [from = never[0]] {
                char byte = 0;
                return std::string(&byte, read(from, &byte, 1) == 1 ? 1 : 0);
              }).is_late);
  close(never[1]);
}

}  // namespace
}  // namespace heapprofd
