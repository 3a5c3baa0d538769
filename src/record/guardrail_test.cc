#include "record/guardrail.h"

#include <gtest/gtest.h>
#include <time.h>

namespace heapprofd {
namespace {

TEST(GuardrailTest, MemoryIsThatOfThisProcess) {
  EXPECT_TRUE(Guardrail({.max_memory_kib = 1}).IsHit());
  EXPECT_FALSE(Guardrail({.max_memory_kib = uint64_t{1} << 40}).IsHit());
}

// All that the process spends, from when the guardrail was put up.
TEST(GuardrailTest, CpuTimeCountsFromTheBegin) {
  const Guardrail guardrail({.max_cpu_seconds = 1});
  const Guardrail wide({.max_cpu_seconds = 3600});
  EXPECT_FALSE(guardrail.IsHit());
  const clock_t begin = clock();
  while (clock() - begin < CLOCKS_PER_SEC + CLOCKS_PER_SEC / 100) {
  }
  EXPECT_TRUE(guardrail.IsHit());
  EXPECT_FALSE(wide.IsHit());
  EXPECT_FALSE(Guardrail({.max_cpu_seconds = 1}).IsHit());
}

TEST(GuardrailTest, WithoutLimitsNothingIsHit) {
  EXPECT_FALSE(Guardrail({}).IsHit());
}

}  // namespace
}  // namespace heapprofd
