#include "attach/thread/traced_thread.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "attach/stopped_process.h"

namespace heapprofd {
namespace {

constexpr uint64_t kStopPatienceNs = 10'000'000'000;

// How a child saw its one call of epoll_pwait end.
enum Seen : int { kWoken = 0, kInterrupted = 1, kHandled = 2, kTimedOut = 3 };

volatile sig_atomic_t g_was_handled = 0;

// A child that waits in epoll_pwait until Wake. It handles SIGUSR1, blocked except in
// that call.
class Waiter {
 public:
  Waiter() : event_(eventfd(0, EFD_CLOEXEC)), pid_(fork()) {
    if (pid_ == 0)
      _exit(WaitOnce());
    AwaitCall();
  }

  ~Waiter() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
    close(event_);
  }

  pid_t pid() const { return pid_; }

  void AwaitCall() const {
    const std::string number = std::to_string(SYS_epoll_pwait) + " ";
    while (ReadProcFile(ProcPath(pid_, "syscall")).rfind(number, 0) != 0 ||
           ReadProcFile(ProcPath(pid_, "stat")).find(") S ") == std::string::npos)
      usleep(100);
  }

  void Wake() const {
    const uint64_t one = 1;
    EXPECT_EQ(write(event_, &one, sizeof(one)), 8);
  }

  // How it ended.
  Seen Join() const {
    siginfo_t info{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(info.si_code, CLD_EXITED);
    return static_cast<Seen>(info.si_status);
  }

 private:
  int WaitOnce() const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGUSR1, [](int) { g_was_handled = 1; });
    sigset_t user;
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &user, nullptr);
    const int epoll = epoll_create1(0);
    epoll_event interest{};
    interest.events = EPOLLIN;
    epoll_ctl(epoll, EPOLL_CTL_ADD, event_, &interest);
    epoll_event event;
    constexpr int kMs = 20'000;
    const int result = epoll_pwait(epoll, &event, 1, kMs, &none);
    if (result < 0)
      return g_was_handled != 0 ? kHandled : kInterrupted;
    return result == 1 ? kWoken : kTimedOut;
  }

  int event_;
  pid_t pid_;
};

TEST(TracedThreadTest, AStopIsNotSeenByTheCallThatItInterrupts) {
  const Waiter waiter;
  for (int i = 0; i < 20; ++i) {
    TracedThread thread(waiter.pid());
    ASSERT_TRUE(thread.Seize());
    ASSERT_EQ(thread.WaitForStop(MonotonicNs() + kStopPatienceNs),
              TracedThread::Wait::kStopped);
    thread.Release();
  }
  waiter.Wake();
  EXPECT_EQ(waiter.Join(), kWoken);
}

// The call begins anew as soon as the thread has stopped, not when it is let go.
TEST(TracedThreadTest, ATracerThatIsKilledMeanwhileIsNotSeenEither) {
  const Waiter waiter;
  const pid_t tracer = fork();
  if (tracer == 0) {
    TracedThread thread(waiter.pid());
    if (thread.Seize() && thread.WaitForStop(MonotonicNs() + kStopPatienceNs) ==
                              TracedThread::Wait::kStopped)
      raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(tracer, &status, 0), tracer);
  ASSERT_TRUE(WIFSIGNALED(status));
  waiter.Wake();
  EXPECT_EQ(waiter.Join(), kWoken);
}

TEST(TracedThreadTest, ASignalThatIsIgnoredIsNotSeenWhenItArrivesTogetherWithTheStop) {
  const Waiter waiter;
  TracedThread thread(waiter.pid());
  ASSERT_TRUE(thread.Seize());
  kill(waiter.pid(), SIGWINCH);
  ASSERT_EQ(thread.WaitForStop(MonotonicNs() + kStopPatienceNs),
            TracedThread::Wait::kStopped);
  thread.Release();
  waiter.Wake();
  EXPECT_EQ(waiter.Join(), kWoken);
}

TEST(TracedThreadTest, ASignalThatIsIgnoredIsNotSeenByAThreadThatRunsTraced) {
  const Waiter waiter;
  TracedThread thread(waiter.pid());
  ASSERT_TRUE(thread.Seize());
  ASSERT_EQ(thread.WaitForStop(MonotonicNs() + kStopPatienceNs),
            TracedThread::Wait::kStopped);
  thread.Continue();
  waiter.AwaitCall();
  kill(waiter.pid(), SIGWINCH);
  while (ReadProcFile(ProcPath(waiter.pid(), "stat")).find(") t ") == std::string::npos)
    usleep(100);
  ASSERT_TRUE(thread.Serve());
  thread.Release();
  waiter.Wake();
  EXPECT_EQ(waiter.Join(), kWoken);
}

// A program that lets a signal in only while it waits relies on the wait to end.
TEST(TracedThreadTest, ASignalThatArrivesWhileStoppedEndsTheCallThatLetsItIn) {
  const Waiter waiter;
  {
    const Result<RemoteProcess> process = RemoteProcess::Open(waiter.pid());
    ASSERT_TRUE(process.ok()) << process.status().message();
    const Result<StoppedProcess> stopped = StoppedProcess::Stop(process.value());
    ASSERT_TRUE(stopped.ok()) << stopped.status().message();
    kill(waiter.pid(), SIGUSR1);
  }
  EXPECT_EQ(waiter.Join(), kHandled);
}

TEST(TracedThreadTest, AHandledSignalThatArrivesBeforeTheStopEndsTheCall) {
  const Waiter waiter;
  TracedThread thread(waiter.pid());
  ASSERT_TRUE(thread.Seize());
  kill(waiter.pid(), SIGUSR1);
  ASSERT_EQ(thread.WaitForStop(MonotonicNs() + kStopPatienceNs),
            TracedThread::Wait::kStopped);
  thread.Release();
  EXPECT_EQ(waiter.Join(), kHandled);
}

}  // namespace
}  // namespace heapprofd
