#include "client/probes.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heapprofd {
namespace {

TEST(WeightedBytesTest, SmallAllocationsStandForTheirUnbiasedShare) {
  for (const uint64_t interval : {uint64_t{2}, uint64_t{4096}, uint64_t{1} << 40}) {
    for (const uint64_t size :
         {uint64_t{1}, interval / 100, interval / 3, interval - 1}) {
      if (size == 0)
        continue;
      const auto bytes = static_cast<double>(size);
      const double exact = bytes / -std::expm1(-bytes / static_cast<double>(interval));
      EXPECT_NEAR(static_cast<double>(WeightedBytes(size, interval)), exact,
                  exact / (1 << 20) + 1)
          << size << " of " << interval;
    }
  }
}

TEST(WeightedBytesTest, LargeAllocationsStandForThemselves) {
  EXPECT_EQ(WeightedBytes(4096, 4096), 4096u);
  EXPECT_EQ(WeightedBytes(uint64_t{1} << 60, 1), uint64_t{1} << 60);
}

TEST(ProbesTest, NobodyListens) {
  EXPECT_EQ(otel_memory_alloc_semaphore, 0);
  EXPECT_EQ(otel_memory_free_semaphore, 0);
  ProbeAllocation(1, 2, 3);
  ProbeFree(1);
}

}  // namespace
}  // namespace heapprofd
