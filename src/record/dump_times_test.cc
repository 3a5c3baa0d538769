#include "record/dump_times.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStarted = 5000 * kMs;

TEST(DumpTimesTest, TheFirstIsDueAfterThePhaseAndOthersEachInterval) {
  DumpTimes times({.phase_ms = 30, .interval_ms = 100}, kStarted);
  EXPECT_EQ(times.next_ns(), kStarted + 30 * kMs);
  times.Advance(kStarted + 31 * kMs);
  EXPECT_EQ(times.next_ns(), kStarted + 130 * kMs);
}

TEST(DumpTimesTest, OneThatTookLongMakesTheNextNoLater) {
  DumpTimes times({.phase_ms = 0, .interval_ms = 100}, kStarted);
  times.Advance(kStarted + 99 * kMs);
  EXPECT_EQ(times.next_ns(), kStarted + 100 * kMs);
  times.Advance(kStarted + 200 * kMs);  // the next one is due by now
  EXPECT_EQ(times.next_ns(), kStarted + 200 * kMs);
}

TEST(DumpTimesTest, ThoseThatWereMissedAreLeftOut) {
  DumpTimes times({.phase_ms = 0, .interval_ms = 100}, kStarted);
  times.Advance(kStarted + 350 * kMs);
  EXPECT_EQ(times.next_ns(), kStarted + 300 * kMs);  // which is due, not four of them
}

TEST(DumpTimesTest, WithoutAnIntervalThereIsNone) {
  DumpTimes times({.phase_ms = 30}, kStarted);
  EXPECT_EQ(times.next_ns(), UINT64_MAX);
  times.Advance(kStarted);
  EXPECT_EQ(times.next_ns(), UINT64_MAX);
}

}  // namespace
}  // namespace heapprofd
