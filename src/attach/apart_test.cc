#include "attach/apart.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "attach/thread/traced_thread.h"
#include "attach/thread/vfork_waiter.h"

namespace heapprofd {
namespace {

std::string TracerOf(pid_t pid) {
  return StatusField(ReadProcFile(ProcPath(pid, "status"), 16384), "TracerPid");
}

constexpr GuardedUser kMallory{.id = 61001};
constexpr GuardedUser kAlice{.id = 61002};

TEST(RunApartTest, OthersAreServedWhileTheWorkWaits) {
  std::atomic<int> served = 0;
  EXPECT_FALSE(IsRunningApart());
  EXPECT_TRUE(RunApart(
      kMallory,
      [&] {
        while (served < 3)
          usleep(100);
      },
      [&] {
        EXPECT_TRUE(IsRunningApart());
        EXPECT_FALSE(RunApart(
            kMallory, [] {}, [] {}));
        ++served;
      }));
  EXPECT_FALSE(IsRunningApart());
}

// Each would hold up the next as long as the first, and all of them those of others.
TEST(RunApartTest, WhoseProcessHangsIsNotTriedAgainAndOthersAre) {
  const auto is_over = std::make_shared<std::atomic<bool>>(false);
  const auto hang = [is_over] {
    while (!*is_over)
      usleep(100);
  };
  constexpr ApartPatience kShort{.all_ns = 1'000'000};
  EXPECT_FALSE(RunApart(
      kMallory, hang, [] {}, kShort));
  EXPECT_FALSE(RunApart(
      kMallory, [] {}, [] {}));
  EXPECT_TRUE(RunApart(
      kAlice, [] {}, [] {}));
  *is_over = true;
  while (!RunApart(
      kMallory, [] {}, [] {}))
    usleep(100);
}

TEST(RunApartTest, UsersOfOtherNameSpacesHoldUpAsFewAsOneMay) {
  const auto is_over = std::make_shared<std::atomic<bool>>(false);
  const auto hang = [is_over] {
    while (!*is_over)
      usleep(100);
  };
  constexpr ApartPatience kShort{.all_ns = 1'000'000};
  for (GuardedUser user{.id = 100'000, .is_elsewhere = true}; user.id < 100'020;
       ++user.id)
    RunApart(
        user, hang, [] {}, kShort);
  const GuardedUser another{.id = 100'100, .is_elsewhere = true};
  EXPECT_FALSE(RunApart(
      another, [] {}, [] {}));
  EXPECT_TRUE(RunApart(
      kAlice, [] {}, [] {}));
  *is_over = true;
  while (!RunApart(
      another, [] {}, [] {}))
    usleep(100);
}

// Who is served only behind it has to wait until then.
TEST(RunApartTest, WorkThatStandsStillIsLeftLongBeforeItsDeadline) {
  const auto is_over = std::make_shared<std::atomic<bool>>(false);
  const auto stand = [is_over] { is_over->wait(false); };
  constexpr uint64_t kLongNs = 300'000'000'000;
  const uint64_t begin_ns = MonotonicNs();
  EXPECT_FALSE(
      RunApart(kMallory, stand, [] {}, {.all_ns = kLongNs, .stalled_ns = 50'000'000}));
  EXPECT_LT(MonotonicNs() - begin_ns, kLongNs / 2);
  *is_over = true;
  is_over->notify_all();
  while (!RunApart(
      kMallory, [] {}, [] {}))
    usleep(100);
}

TEST(RunApartTest, WorkThatLooksAgainAndAgainDoesNotStandStill) {
  constexpr uint64_t kStalledNs = 500'000'000;
  EXPECT_TRUE(RunApart(
      kMallory,
      [] {
        for (const uint64_t end_ns = MonotonicNs() + 2 * kStalledNs;
             MonotonicNs() < end_ns;)
          usleep(100);
      },
      [] {}, {.stalled_ns = kStalledNs}));
}

TEST(RunApartTest, AThreadThatDoesNotStopIsLetGoAndSignalsEndItsProgram) {
  const VforkWaiter waiter;
  EXPECT_TRUE(RunApart(
      waiter.pid(),
      [&] {
        TracedThread thread(waiter.pid());
        ASSERT_TRUE(thread.Seize());
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

}  // namespace
}  // namespace heapprofd
