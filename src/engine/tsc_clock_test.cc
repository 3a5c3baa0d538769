#include "engine/tsc_clock.h"

#include <gtest/gtest.h>

#include <vector>

namespace heapprofd {
namespace {

struct Reading {
  uint64_t tsc;
  uint64_t ns;
};

// Readings over some milliseconds: long enough for the clock to know its rate.
std::vector<Reading> TakeReadings() {
  std::vector<Reading> readings;
  const uint64_t end = MonotonicNs() + 20'000'000;
  do {
    readings.push_back({__builtin_ia32_rdtsc(), MonotonicNs()});
  } while (readings.back().ns < end);
  return readings;
}

TEST(TscClockTest, ReadingsAreConvertedToTheTimeTheyWereTaken) {
  TscClock clock;
  const std::vector<Reading> readings = TakeReadings();
  clock.Update();
  uint64_t last = 0;
  size_t far = 0;  // preempted between the two readings of a pair
  for (const Reading& reading : readings) {
    const uint64_t ns = clock.ToNs(reading.tsc);
    EXPECT_GE(ns, last);
    last = ns;
    const uint64_t error = ns > reading.ns ? ns - reading.ns : reading.ns - ns;
    far += error > 1'000'000 ? 1u : 0u;
  }
  EXPECT_LE(far, readings.size() / 100 + 2);
}

TEST(TscClockTest, AReadingOfTheFutureIsNow) {
  TscClock clock;
  TakeReadings();
  clock.Update();
  const uint64_t before = MonotonicNs();
  const uint64_t told = clock.ToNs(UINT64_MAX);
  const uint64_t after = MonotonicNs();
  constexpr uint64_t kError = 1'000'000;
  EXPECT_GE(told + kError, before);
  EXPECT_LE(told, after + kError);
}

TEST(TscClockTest, ReadingsSinceTheLastUpdateAreNotAtOneMoment) {
  TscClock clock;
  TakeReadings();
  clock.Update();
  const std::vector<Reading> readings = TakeReadings();
  size_t far = 0;  // preempted between the two readings of a pair
  for (const Reading& reading : readings) {
    const uint64_t ns = clock.ToNs(reading.tsc);
    const uint64_t error = ns > reading.ns ? ns - reading.ns : reading.ns - ns;
    far += error > 1'000'000 ? 1u : 0u;
  }
  EXPECT_LE(far, readings.size() / 100 + 2);
}

TEST(TscClockTest, AReadingBeforeTheStartIsTheStart) {
  const uint64_t before = MonotonicNs();
  TscClock clock;
  const uint64_t after = MonotonicNs();
  TakeReadings();
  clock.Update();
  for (const uint64_t tsc : {uint64_t{0}, uint64_t{1}}) {
    EXPECT_GE(clock.ToNs(tsc), before);
    EXPECT_LE(clock.ToNs(tsc), after);
  }
}

}  // namespace
}  // namespace heapprofd
