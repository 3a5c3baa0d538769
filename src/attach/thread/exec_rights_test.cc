#include "attach/thread/exec_rights.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "attach/thread/traced_thread.h"
#include "base/clock.h"
#include "base/files/own_rights.h"
#include "sandbox/sandbox.h"

namespace heapprofd {
namespace {

constexpr uint64_t kExecDeadlineNs = 20'000'000'000;

// A child that waits inside execve: the file that it executes has a lease, which the
// kernel lets its holder give up first.
class ExecutingChild {
 public:
  ExecutingChild() {
    signal(SIGIO, SIG_IGN);  // by which the kernel tells of that
    std::string path = testing::TempDir() + "/hpdXXXXXX";
    file_ = mkostemp(path.data(), O_CLOEXEC);
    fchmod(file_, 0700);
    has_lease_ = fcntl(file_, F_SETLEASE, F_WRLCK) == 0;
    pid_ = fork();
    if (pid_ == 0) {
      execl(path.c_str(), path.c_str(), nullptr);
      _exit(0);
    }
    const uint64_t end_ns = MonotonicNs() + kExecDeadlineNs;
    while (has_lease_ && !IsInExec(pid_) && MonotonicNs() < end_ns)
      SleepNs(1'000'000);
    unlink(path.c_str());
  }

  ~ExecutingChild() {
    close(file_);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  bool has_lease() const { return has_lease_; }

  pid_t pid() const { return pid_; }

 private:
  int file_;
  bool has_lease_;
  pid_t pid_;
};

TEST(ExecRightsTest, AChildInsideOfAnExecIsSeen) {
  const ExecutingChild child;
  if (!child.has_lease())
    GTEST_SKIP() << "this file system has no leases";
  EXPECT_TRUE(IsInExec(child.pid()));
  EXPECT_FALSE(IsInExec(getpid()));
}

TEST(ExecRightsTest, RootMayTraceExecs) {
  EXPECT_EQ(MayTraceExecs(getpid()), HasCapability(CAP_SYS_PTRACE));
}

// What a process without capabilities does; gives what went wrong.
const char* TraceWithoutCapabilities() {
  if (!DropCapabilities(0).ok() || MayTraceExecs(getpid()))
    return "capabilities are left";
  const ExecutingChild child;
  if (!child.has_lease())
    return nullptr;
  TracedThread thread(child.pid());
  if (thread.Seize() || errno != EAGAIN)
    return "a thread inside of an exec was traced";
  const Result<RemoteProcess> process = RemoteProcess::Open(child.pid());
  return process.ok() && AwaitNoExec(process.value()) ? "its exec was not seen" : nullptr;
}

TEST(ExecRightsTest, WithoutTheRightToNobodyIsTracedInsideOfAnExec) {
  const pid_t tracer = fork();
  if (tracer == 0) {
    const char* const wrong = TraceWithoutCapabilities();
    if (wrong != nullptr)
      fprintf(stderr, "%s\n", wrong);
    _exit(wrong == nullptr ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(tracer, &status, 0), tracer);
  EXPECT_EQ(status, 0);
}

TEST(ExecRightsTest, OneThatSleepsIsNoRisk) {
  const pid_t sleeper = fork();
  if (sleeper == 0) {
    pause();
    _exit(0);
  }
  const Result<RemoteProcess> process = RemoteProcess::Open(sleeper);
  ASSERT_TRUE(process.ok()) << process.status().message();
  EXPECT_TRUE(AwaitNoExec(process.value()));
  kill(sleeper, SIGKILL);
  waitpid(sleeper, nullptr, 0);
}

}  // namespace
}  // namespace heapprofd
