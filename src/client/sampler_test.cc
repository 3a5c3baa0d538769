// The sampler's statistics. Bounds are 4 standard errors around the exact value, with
// fixed seeds.
#include "client/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

namespace heapprofd {
namespace {

// What a hook does for one allocation: the countdown inline, the rest in CountDown. True:
// sampled.
bool Allocate(ThreadSlot& slot, uint64_t size, uint64_t interval) {
  if (size < slot.bytes_left) {
    slot.bytes_left -= size;
    ++slot.calls;
    return false;
  }
  return CountDown(slot, size, interval) == SampleDecision::kSample;
}

struct FreshSlot : ThreadSlot {
  FreshSlot(uint64_t first_interval, uint64_t seed) : ThreadSlot{} {
    random = seed;
    RestartCountdown(*this, first_interval);
  }
};

TEST(ExponentialCountdownTest, MeanAndVarianceAreThoseOfTheDistribution) {
  constexpr int kDraws = 2'000'000;
  for (const uint64_t interval : {uint64_t{64}, uint64_t{4096}, uint64_t{1} << 20}) {
    uint64_t state = 0x123456789abcdef;
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const auto x =
          static_cast<double>(ExponentialCountdown(interval, NextRandom(&state)));
      sum += x;
      squares += x * x;
    }
    // floor(E) + 1 is geometric with q = exp(-1/interval).
    const double q = std::exp(-1.0 / static_cast<double>(interval));
    const double mean = 1 / (1 - q);
    const double variance = q / ((1 - q) * (1 - q));
    const double mean_of_draws = sum / kDraws;
    const double variance_of_draws = squares / kDraws - mean_of_draws * mean_of_draws;
    EXPECT_NEAR(mean_of_draws, mean, 4 * std::sqrt(variance / kDraws)) << interval;
    // The fourth central moment of an exponential is 9 variance².
    EXPECT_NEAR(variance_of_draws, variance, 4 * variance * std::sqrt(8.0 / kDraws))
        << interval;
  }
}

TEST(ExponentialCountdownTest, ItFollowsTheLogarithmToAFewMillionths) {
  std::mt19937_64 random(9);
  constexpr uint64_t kInterval = uint64_t{1} << 40;  // so that rounding to bytes is small
  for (int i = 0; i < 1'000'000; ++i) {
    const uint64_t bits = random() >> (random() % 50);
    const double u = std::ldexp(static_cast<double>(bits | 1), -64);
    const double expected = -std::log(u);
    const double got = static_cast<double>(ExponentialCountdown(kInterval, bits)) /
                       static_cast<double>(kInterval);
    ASSERT_NEAR(got, expected, 4e-6) << bits;
  }
}

TEST(ExponentialCountdownTest, TheExtremesOfTheRandomNumberStayInBounds) {
  for (const uint64_t interval : {uint64_t{1}, uint64_t{4096}, uint64_t{1} << 40}) {
    EXPECT_EQ(ExponentialCountdown(interval, UINT64_MAX), 1u);
    const auto largest =
        static_cast<double>(ExponentialCountdown(interval, 0));  // u = 2^-64
    EXPECT_NEAR(largest, 44.3614 * static_cast<double>(interval) + 1,
                1e-4 * static_cast<double>(interval) + 1);
  }
  EXPECT_LE(ExponentialCountdown(UINT64_MAX, 0), (uint64_t{1} << 60) + 1);
}

TEST(SamplerTest, AnAllocationIsSampledWithItsInclusionProbability) {
  constexpr uint64_t kInterval = 4096;
  constexpr int kDraws = 1'000'000;
  for (const uint64_t size : {1u, 8u, 16u, 100u, 1024u, 2048u, 4000u, 4095u}) {
    FreshSlot slot(kInterval, 77 + size);
    int sampled = 0;
    for (int i = 0; i < kDraws; ++i)
      sampled += Allocate(slot, size, kInterval) ? 1 : 0;
    const double p = -std::expm1(-static_cast<double>(size) / kInterval);
    EXPECT_NEAR(sampled, p * kDraws, 4 * std::sqrt(p * (1 - p) * kDraws)) << size;
  }
}

TEST(SamplerTest, TheInclusionProbabilityHoldsInAMixOfSizes) {
  constexpr uint64_t kInterval = 1000;
  constexpr uint64_t kSizes[] = {24, 200, 999, 5000};
  FreshSlot slot(kInterval, 5);
  std::mt19937_64 random(6);
  int draws[4] = {};
  int sampled[4] = {};
  for (int i = 0; i < 2'000'000; ++i) {
    const size_t which = random() % 4;
    ++draws[which];
    sampled[which] += Allocate(slot, kSizes[which], kInterval) ? 1 : 0;
  }
  for (size_t i = 0; i < 3; ++i) {
    const double p = -std::expm1(-static_cast<double>(kSizes[i]) / kInterval);
    EXPECT_NEAR(sampled[i], p * draws[i], 4 * std::sqrt(p * (1 - p) * draws[i]));
  }
  EXPECT_EQ(sampled[3], draws[3]);
}

TEST(SamplerTest, AllocationsOfAtLeastTheIntervalAreAlwaysSampled) {
  std::mt19937_64 random(3);
  FreshSlot slot(4096, 8);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t size = random() % 2 == 0 ? 4096 : 4096 + random() % 100'000'000;
    ASSERT_TRUE(Allocate(slot, size, 4096));
    Allocate(slot, random() % 4096, 4096);
  }
}

TEST(SamplerTest, AnIntervalOfOneByteSamplesEverythingButEmptyAllocations) {
  FreshSlot slot(1, 8);
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(Allocate(slot, 1 + i % 7, 1));
    EXPECT_FALSE(Allocate(slot, 0, 1));
  }
}

TEST(SamplerTest, TotalsAreExactUnderRandomSizesAndIntervalChanges) {
  std::mt19937_64 random(12);
  uint64_t interval = 4096;
  FreshSlot slot(interval, 1);
  uint64_t bytes = 0;
  for (uint64_t i = 1; i <= 1'000'000; ++i) {
    const uint64_t size = random() % 50 == 0 ? random() % 1'000'000 : random() % 300;
    if (random() % 1000 == 0)
      interval = 1 + random() % 100'000;
    Allocate(slot, size, interval);
    bytes += size;
    ASSERT_EQ(slot.calls, i);
    ASSERT_EQ(slot.granted - slot.bytes_left, bytes);
    ASSERT_GE(slot.bytes_left, 1u);
    ASSERT_LE(slot.bytes_left, slot.interval);
  }
}

TEST(SamplerTest, ANewIntervalTakesEffectBehindTheNextSlowCall) {
  FreshSlot slot(4096, 4);
  // Large for the interval in force, not for the new one: still decided by the old.
  EXPECT_TRUE(Allocate(slot, 5000, 1 << 20));
  EXPECT_EQ(slot.interval, uint64_t{1} << 20);
  constexpr int kDraws = 200'000;
  int sampled = 0;
  for (int i = 0; i < kDraws; ++i)
    sampled += Allocate(slot, 5000, 1 << 20) ? 1 : 0;
  const double p = -std::expm1(-5000.0 / (1 << 20));
  EXPECT_NEAR(sampled, p * kDraws, 4 * std::sqrt(p * (1 - p) * kDraws));
}

TEST(NextRandomTest, TheStateNeverBecomesZero) {
  uint64_t state = 1;
  for (int i = 0; i < 1'000'000; ++i) {
    NextRandom(&state);
    ASSERT_NE(state, 0u);
  }
}

}  // namespace
}  // namespace heapprofd
