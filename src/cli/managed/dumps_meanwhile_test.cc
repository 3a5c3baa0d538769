// Whom dumps in the middle of a recording are asked of, and which are left out.
#include "cli/managed/dumps_meanwhile.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/child_process.h"

namespace heapprofd {
namespace {

// A process that waits and is no virtual machine; with this number, if it is not 0.
class Waiter {
 public:
  explicit Waiter(pid_t number = 0) {
    const pid_t parent = getpid();
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = number == 0 ? 0 : reinterpret_cast<uint64_t>(&number);
    arguments.set_tid_size = number == 0 ? 0 : 1;
    pid_ = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
    if (pid_ != 0)
      return;
    EndWithParent(parent, SIGKILL);
    while (true)
      pause();
  }

  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  ~Waiter() { End(); }

  void End() {
    if (!is_there())  // -1 would be all processes
      return;
    kill(pid_, SIGKILL);
    EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
    pid_ = -1;
  }

  bool is_there() const { return pid_ > 0; }

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

constexpr int kNoStop = -1;  // nobody interrupts

// Nothing comes into it.
const OutputDirectory& Directory() {
  static const OutputDirectory directory(ScopedFd(), testing::TempDir());
  return directory;
}

TEST(DumpsMeanwhileTest, WhoIsNoVirtualMachineIsLeftOutWithTheReason) {
  const Waiter waiter;
  if (!waiter.is_there())
    GTEST_SKIP() << "no clone3 here";
  DumpsMeanwhile dumps({waiter.pid()}, Directory(), {.most = 3});
  EXPECT_EQ(dumps.Look(1), "");
  const std::string said = dumps.End(kNoStop);
  EXPECT_NE(said.find("1 dump of the Java heap was left out: 1 because there was nobody "
                      "to ask (cannot attach to process " +
                      std::to_string(waiter.pid())),
            std::string::npos)
      << said;
}

TEST(DumpsMeanwhileTest, AnotherProcessThatHasGotTheNumberIsNotAsked) {
  Waiter first;
  if (!first.is_there())
    GTEST_SKIP() << "no clone3 here";
  const pid_t pid = first.pid();
  DumpsMeanwhile dumps({pid}, Directory(), {.most = 3});
  first.End();
  DumpsMeanwhile of_nobody({pid}, Directory(), {.most = 3});
  EXPECT_EQ(of_nobody.Look(1), "");
  EXPECT_NE(of_nobody.End(kNoStop).find("(cannot hold process " + std::to_string(pid) +
                                        ": No such process)"),
            std::string::npos);
  const Waiter other(pid);
  if (other.pid() != pid)
    GTEST_SKIP() << "numbers of processes cannot be chosen here";
  EXPECT_EQ(dumps.Look(1), "");
  EXPECT_EQ(dumps.End(kNoStop),
            "heap_profile: 1 dump of the Java heap was left out: 1 because there was "
            "nobody to ask (process " +
                std::to_string(pid) + " has ended)\n");
}

TEST(DumpsMeanwhileTest, WhatComesNearTheEndIsLeftOutAndCounted) {
  DumpsMeanwhile dumps({getpid()}, Directory(), {.most = 3});
  dumps.BeginNoMore();
  EXPECT_EQ(dumps.Look(2), "");
  EXPECT_EQ(dumps.End(kNoStop),
            "heap_profile: 2 dumps of the Java heap were left out: 2 because the "
            "recording was ending\n");
}

}  // namespace
}  // namespace heapprofd
