#include "attach/borrowed_thread.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <array>
#include <functional>
#include <memory>

#include "attach/apart.h"
#include "attach/thread/test_process.h"
#include "attach/thread/vfork_waiter.h"
#include "attach/wait_limit.h"

namespace heapprofd {
namespace {

// On the first processor.
class PinnedProcess : public TestProcess {
 public:
  explicit PinnedProcess(const std::function<void()>& run)
      : TestProcess([&run] {
          cpu_set_t first;
          CPU_ZERO(&first);
          CPU_SET(0, &first);
          sched_setaffinity(0, sizeof(first), &first);
          run();
        }) {}
};

TEST(BorrowThreadTest, AThreadThatCannotStopIsNotTouched) {
  const VforkWaiter waiter;
  const Result<RemoteProcess> process = RemoteProcess::Open(waiter.pid());
  ASSERT_TRUE(process.ok()) << process.status().message();
  const Result<TracedThread> thread = BorrowThread(process.value());
  EXPECT_FALSE(thread.ok());
  EXPECT_NE(thread.status().message().find(
                ": its threads are in an uninterruptible sleep; try again later"),
            std::string::npos)
      << thread.status().message();
  EXPECT_EQ(
      StatusField(ReadProcFile(ProcPath(waiter.pid(), "status"), 16384), "TracerPid"),
      "0");
}

TEST(BorrowThreadTest, AThreadThatGetsNoProcessorIsWaitedFor) {
  const PinnedProcess starved([] {
    while (true)
      asm volatile("");
  });
  std::array<int, 2> begun{};
  ASSERT_EQ(pipe(begun.data()), 0);
  const PinnedProcess hog([&] {
    const sched_param first{.sched_priority = 2};
    const bool can_starve = sched_setscheduler(0, SCHED_FIFO, &first) == 0;
    const uint64_t end = MonotonicNs() + 400'000'000;
    (void)!write(begun[1], can_starve ? "y" : "n", 1);
    while (can_starve && MonotonicNs() < end) {
    }
  });
  char can_starve = 0;
  ASSERT_EQ(read(begun[0], &can_starve, 1), 1);
  close(begun[0]);
  close(begun[1]);
  if (can_starve != 'y')
    GTEST_SKIP() << "only root may set the priority that keeps others from running";
  const Result<RemoteProcess> process = RemoteProcess::Open(starved.pid());
  ASSERT_TRUE(process.ok()) << process.status().message();
  const Result<TracedThread> thread = BorrowThread(process.value());
  EXPECT_TRUE(thread.ok()) << thread.status().message();
}

// The sum of their limits would be longer than the work is waited for, and what is said
// then, that the kernel hangs, would not be so.
TEST(BorrowThreadTest, AllWaitsOfAWorkEndBeforeItCountsAsHanging) {
  const PinnedProcess stray([] {
    while (true)
      asm volatile("");
  });
  // In which its one thread is for ever.
  constexpr OurCode kEverywhere{.begin = 0, .end = ~uint64_t{0}};
  constexpr int kWaits = 70;  // of 2 s each
  constexpr ApartPatience kPatience{.all_ns = 120'000'000'000, .own_ns = 0};
  const auto given_up = std::make_shared<int>(0);
  const pid_t pid = stray.pid();
  EXPECT_TRUE(RunApart(
      pid,
      [pid, given_up, kEverywhere] {
        const Result<RemoteProcess> process = RemoteProcess::Open(pid);
        for (int i = 0; process.ok() && i < kWaits; ++i)
          *given_up += AwaitStrayThread(process.value(), kEverywhere).ok() ? 0 : 1;
      },
      [] {}, kPatience));
  EXPECT_EQ(*given_up, kWaits);
  constexpr ApartPatience kUsual{};
  constexpr uint64_t kToLetGoNs = 4'000'000'000;
  EXPECT_LE(kUsual.own_ns + kToLetGoNs, kUsual.all_ns);
}

TEST(BorrowThreadTest, OfAStrayThreadNoMoreIsSaidThanIsSeen) {
  const PinnedProcess stray([] {
    while (true)
      asm volatile("");
  });
  const Result<RemoteProcess> process = RemoteProcess::Open(stray.pid());
  ASSERT_TRUE(process.ok()) << process.status().message();
  const WaitLimit soon(MonotonicNs() + 1'000'000'000);
  constexpr uint64_t kNowhere = 0xfeed'f00d'dead'0001;
  EXPECT_TRUE(
      AwaitStrayThread(process.value(), {.begin = kNowhere, .end = kNowhere + 1}).ok());
  const Status status =
      AwaitStrayThread(process.value(), {.begin = 0, .end = ~uint64_t{0}});
  EXPECT_EQ(status.code(), StatusCode::kTryAgain);
  EXPECT_NE(
      status.message().find(": a thread of it may still be in what an earlier attempt to "
                            "attach has begun; if the process is stopped, let it go "
                            "on; try again"),
      std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace heapprofd
