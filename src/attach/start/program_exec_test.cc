#include "attach/start/program_exec.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <vector>

#include "attach/remote_process.h"
#include "attach/thread/test_process.h"
#include "attach/thread/vfork_waiter.h"
#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kExecPatienceNs = 60'000'000'000;

bool MayWaitForExec() {
  static const uint64_t deadline_ns = MonotonicNs() + kExecPatienceNs;
  return MonotonicNs() < deadline_ns;
}

bool IsSame() {
  return true;
}

std::array<int, 2> g_exec_pipe{};

// Executes this program when it is told to.
void* ExecuteWhenTold(void* /*unused*/) {
  char byte = 0;
  (void)!read(g_exec_pipe[0], &byte, 1);
  execl("/proc/self/exe", "executed", "--gtest_list_tests", nullptr);
  _exit(1);
}

void ExecuteInSecondThread() {
  pthread_t thread{};
  pthread_create(&thread, nullptr, ExecuteWhenTold, nullptr);
  PauseForEver();
}

class ProgramExecTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(g_exec_pipe.data()), 0); }

  ~ProgramExecTest() override {
    close(g_exec_pipe[0]);
    close(g_exec_pipe[1]);
  }

  // Has the traced thread do it, which has been asked to stop.
  static void Tell(TracedThread* thread) {
    ASSERT_EQ(thread->WaitForStop(MonotonicNs() + kExecPatienceNs),
              TracedThread::Wait::kStopped);
    thread->Continue();
    ASSERT_EQ(write(g_exec_pipe[1], "x", 1), 1);
  }
};

TEST_F(ProgramExecTest, AThreadIsStoppedWhenItHasBecomeTheProgram) {
  const TestProcess process([] { ExecuteWhenTold(nullptr); });
  TracedThread thread(process.pid());
  ASSERT_TRUE(thread.SeizeForExec(process.pid()));
  Tell(&thread);
  EXPECT_EQ(AwaitExec(MayWaitForExec, IsSame, &thread), AwaitedExec::kDone);
  EXPECT_TRUE(thread.is_stopped());
  thread.Release();
}

TEST_F(ProgramExecTest, OneThatIsNotTheFirstHasTheNumberOfItsProcessThen) {
  const TestProcess process(ExecuteInSecondThread);
  const Result<RemoteProcess> opened = RemoteProcess::Open(process.pid());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  std::vector<pid_t> threads;
  while (threads.size() < 2 && MayWaitForExec())
    threads = opened.value().Threads();
  const auto second = std::ranges::find_if(
      threads, [&process](pid_t tid) { return tid != process.pid(); });
  ASSERT_NE(second, threads.end());
  TracedThread thread(*second);
  ASSERT_TRUE(thread.SeizeForExec(process.pid()));
  Tell(&thread);
  EXPECT_EQ(AwaitExec(MayWaitForExec, IsSame, &thread), AwaitedExec::kDone);
  EXPECT_EQ(thread.tid(), process.pid());
  thread.Release();
}

TEST_F(ProgramExecTest, OneThatWasTooLateToBeSeenIsKnownByWhatTheProcessIs) {
  const TestProcess process;
  TracedThread thread(process.pid());
  ASSERT_TRUE(thread.SeizeForExec(process.pid()));
  EXPECT_EQ(AwaitExec(
                MayWaitForExec, [] { return false; }, &thread),
            AwaitedExec::kDone);
  thread.Release();
}

TEST_F(ProgramExecTest, OneThatIsInNoExecHasFailed) {
  const TestProcess process;
  TracedThread thread(process.pid());
  ASSERT_TRUE(thread.SeizeForExec(process.pid()));
  EXPECT_EQ(AwaitExec(MayWaitForExec, IsSame, &thread), AwaitedExec::kFailed);
  EXPECT_TRUE(thread.is_stopped());
  thread.Release();
}

TEST_F(ProgramExecTest, OneThatEndsIsGone) {
  const TestProcess process;
  TracedThread thread(process.pid());
  ASSERT_TRUE(thread.SeizeForExec(process.pid()));
  kill(process.pid(), SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(AwaitExec(MayWaitForExec, IsSame, &thread), AwaitedExec::kGone);
}

TEST_F(ProgramExecTest, OneThatHangsIsWaitedForAsLongAsItMay) {
  const VforkWaiter waiter;
  TracedThread thread(waiter.pid());
  ASSERT_TRUE(thread.SeizeForExec(waiter.pid()));
  int asked = 0;
  EXPECT_EQ(AwaitExec([&asked] { return ++asked < 3; }, IsSame, &thread),
            AwaitedExec::kTimedOut);
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace heapprofd
