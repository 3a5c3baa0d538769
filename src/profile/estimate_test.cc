// The estimator's known values, and that it is unbiased with the variance that it claims.
#include "profile/estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace heapprofd {
namespace {

TEST(EstimateTest, AnAllocationOfAtLeastTheIntervalStandsForItself) {
  for (const uint64_t size : {uint64_t{4096}, uint64_t{4097}, uint64_t{1} << 40}) {
    const Estimate estimate = EstimateOfSample(size, 4096);
    EXPECT_EQ(SamplingProbability(size, 4096), 1);
    EXPECT_EQ(estimate.bytes, static_cast<double>(size));
    EXPECT_EQ(estimate.count, 1);
    EXPECT_EQ(estimate.bytes_variance, 0);
    EXPECT_EQ(estimate.count_variance, 0);
  }
}

TEST(EstimateTest, KnownValuesOfSmallerAllocations) {
  // p = 1 - exp(-1/2) = 0.393469...
  EXPECT_NEAR(SamplingProbability(2048, 4096), 0.39346934028736658, 1e-15);
  const Estimate estimate = EstimateOfSample(2048, 4096);
  EXPECT_NEAR(estimate.count, 2.5414940825367984, 1e-12);
  EXPECT_NEAR(estimate.bytes, 5204.9798810353631, 1e-8);
  EXPECT_NEAR(estimate.count_variance, 3.9176980890327737, 1e-11);
  EXPECT_NEAR(estimate.bytes_variance, 3.9176980890327737 * 2048 * 2048, 1e-4);
}

TEST(EstimateTest, TinyProbabilitiesKeepTheirDigits) {
  const double p = SamplingProbability(1, uint64_t{1} << 40);
  EXPECT_NEAR(p * std::ldexp(1.0, 40), 1, 1e-11);
  EXPECT_NEAR(EstimateOfSample(1, uint64_t{1} << 40).bytes / std::ldexp(1.0, 40), 1,
              1e-11);
}

TEST(EstimateTest, TheExtremesOfSizeAndIntervalAreFinite) {
  for (const uint64_t size : {uint64_t{1}, UINT64_MAX}) {
    for (const uint64_t interval : {uint64_t{1}, UINT64_MAX}) {
      const Estimate estimate = EstimateOfSample(size, interval);
      EXPECT_TRUE(std::isfinite(estimate.bytes) && std::isfinite(estimate.count));
      EXPECT_TRUE(std::isfinite(estimate.bytes_variance));
    }
  }
}

TEST(EstimateTest, SumsOverSamplesAreUnbiasedAndVaryAsTheyClaim) {
  constexpr uint64_t kSizes[] = {16, 100, 700, 4000, 9000};
  constexpr uint64_t kInterval = 4096;
  constexpr int kRounds = 20'000;
  constexpr int kRepeats = 4;
  double true_bytes = 0;
  for (const uint64_t size : kSizes)
    true_bytes += static_cast<double>(size) * kRepeats;
  std::mt19937_64 random(31);
  std::uniform_real_distribution<double> uniform(0, 1);
  double sum = 0;
  double squares = 0;
  double claimed_variance = 0;
  for (int round = 0; round < kRounds; ++round) {
    Estimate total;
    for (const uint64_t size : kSizes) {
      for (int i = 0; i < kRepeats; ++i) {
        if (uniform(random) < SamplingProbability(size, kInterval))
          total += EstimateOfSample(size, kInterval);
      }
    }
    sum += total.bytes;
    squares += (total.bytes - true_bytes) * (total.bytes - true_bytes);
    claimed_variance += total.bytes_variance;
  }
  const double variance = squares / kRounds;
  EXPECT_NEAR(sum / kRounds, true_bytes, 4 * std::sqrt(variance / kRounds));
  EXPECT_NEAR(claimed_variance / kRounds / variance, 1, 0.1);
}

TEST(EstimateTest, SumsOfOtherProgramsHaveTheVarianceOfTheirSamples) {
  const Estimate sample = EstimateOfSample(100, 4096);
  const Estimate sums = EstimateOfSums(50 * sample.bytes, 50 * sample.count, 4096);
  EXPECT_NEAR(sums.bytes_variance, 50 * sample.bytes_variance, sums.bytes_variance / 1e6);
  EXPECT_NEAR(sums.count_variance, 50 * sample.count_variance, sums.count_variance / 1e6);
  EXPECT_EQ(EstimateOfSums(1000, 0, 4096).bytes_variance, 1000 * 4096.0);
  EXPECT_EQ(EstimateOfSums(1e9, 1, 4096).bytes_variance, 0) << "a block that was certain";
  EXPECT_EQ(EstimateOfSums(1000, 10, 1).bytes_variance, 0);
  EXPECT_EQ(EstimateOfSums(1000, 10, 0).bytes_variance, 0) << "the interval is unknown";
  EXPECT_EQ(EstimateOfSums(-5, 1, 4096).bytes_variance, 0);
}

}  // namespace
}  // namespace heapprofd
