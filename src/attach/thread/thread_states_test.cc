#include "attach/thread/thread_states.h"

#include <gtest/gtest.h>

#include "attach/thread/test_process.h"
#include "attach/thread/traced_thread.h"
#include "attach/thread/vfork_waiter.h"
#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kStatePatienceNs = 10'000'000'000;

TEST(ThreadStatesTest, OneThatRunsIsReadyToStop) {
  const TestProcess process([] {
    while (true)
      asm volatile("");
  });
  const pid_t pid = process.pid();
  EXPECT_TRUE(IsRunnable(pid) && IsReady(pid));
  EXPECT_FALSE(IsUninterruptible(pid) || IsDead(pid, pid));
}

TEST(ThreadStatesTest, OneThatWaitsForItsVforkIsNot) {
  const VforkWaiter waiter;
  EXPECT_TRUE(IsUninterruptible(waiter.pid()));
  EXPECT_FALSE(IsRunnable(waiter.pid()) || IsReady(waiter.pid()));
}

TEST(ThreadStatesTest, OneThatHasStoppedForUsIsReady) {
  const TestProcess process;
  TracedThread thread(process.pid());
  ASSERT_TRUE(thread.Seize());
  ASSERT_EQ(thread.WaitForStop(MonotonicNs() + kStatePatienceNs),
            TracedThread::Wait::kStopped);
  EXPECT_TRUE(IsReady(process.pid()));
  EXPECT_FALSE(IsRunnable(process.pid()));
  thread.Release();
}

TEST(ThreadStatesTest, AZombieIsDeadAndSoIsWhatIsNotThere) {
  const TestProcess process([] {});
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(IsDead(process.pid(), process.pid()));
  EXPECT_TRUE(IsDead(getpid(), process.pid()));  // none of ours
}

}  // namespace
}  // namespace heapprofd
