#include "attach/apart.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "attach/borrowed_thread.h"
#include "attach/traced_thread.h"

namespace heapprofd {
namespace {

// A process whose thread waits for the child of its vfork, and cannot be stopped.
class VforkWaiter {
 public:
  VforkWaiter() : pid_(fork()) {
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (true)
          pause();
      }
      _exit(0);
    }
    while (!IsUninterruptible(pid_))
      usleep(100);
  }

  ~VforkWaiter() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
  }

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

std::string TracerOf(pid_t pid) {
  return StatusField(ReadProcFile(ProcPath(pid, "status"), 16384), "TracerPid");
}

TEST(RunApartTest, OthersAreServedWhileTheWorkWaits) {
  std::atomic<int> served = 0;
  EXPECT_FALSE(IsRunningApart());
  EXPECT_TRUE(RunApart(
      [&] {
        while (served < 3)
          usleep(100);
      },
      [&] {
        EXPECT_TRUE(IsRunningApart());
        EXPECT_FALSE(RunApart([] {}, [] {}));
        ++served;
      }));
  EXPECT_FALSE(IsRunningApart());
}

TEST(RunApartTest, AThreadThatDoesNotStopIsLetGoAndSignalsEndItsProgram) {
  const VforkWaiter waiter;
  EXPECT_TRUE(RunApart(
      [&] {
        TracedThread thread(waiter.pid());
        ASSERT_TRUE(thread.Seize(/*is_filtered=*/false));
        EXPECT_EQ(thread.WaitForStop(MonotonicNs() + 20'000'000),
                  TracedThread::Wait::kTimedOut);
        thread.Abandon();
      },
      [] {}));
  while (TracerOf(waiter.pid()) != "0")
    usleep(100);
  EXPECT_TRUE(IsUninterruptible(waiter.pid()));
  kill(waiter.pid(), SIGTERM);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(waiter.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_code, CLD_KILLED);
  EXPECT_EQ(info.si_status, SIGTERM);
}

TEST(BorrowThreadTest, AThreadThatCannotStopIsNotTouched) {
  const VforkWaiter waiter;
  const Result<RemoteProcess> process = RemoteProcess::Open(waiter.pid());
  ASSERT_TRUE(process.ok()) << process.status().message();
  const Result<TracedThread> thread = BorrowThread(process.value());
  EXPECT_FALSE(thread.ok());
  EXPECT_NE(thread.status().message().find("uninterruptible"), std::string::npos)
      << thread.status().message();
  EXPECT_EQ(TracerOf(waiter.pid()), "0");
}

}  // namespace
}  // namespace heapprofd
