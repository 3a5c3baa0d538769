#include "record/guardrail.h"

#include <gtest/gtest.h>
#include <time.h>

#include <thread>

namespace heapprofd {
namespace {

TEST(GuardrailTest, MemoryIsThatOfThisProcess) {
  EXPECT_TRUE(Guardrail({.max_memory_kib = 1}).IsHit());
  EXPECT_FALSE(Guardrail({.max_memory_kib = uint64_t{1} << 40}).IsHit());
}

TEST(GuardrailTest, CpuTimeCountsFromTheBegin) {
  double spent = 100;
  const auto cpu_seconds = [&spent] { return spent; };
  const Guardrail guardrail({.max_cpu_seconds = 1}, cpu_seconds);
  const Guardrail wide({.max_cpu_seconds = 3600}, cpu_seconds);
  spent = 101;
  EXPECT_FALSE(guardrail.IsHit());
  spent = 101.01;
  EXPECT_TRUE(guardrail.IsHit());
  EXPECT_FALSE(wide.IsHit());
  EXPECT_FALSE(Guardrail({.max_cpu_seconds = 1}, cpu_seconds).IsHit());
}

TEST(GuardrailTest, CpuTimeIsThatOfAllThreads) {
  constexpr double kSome = 0.01;
  const double begin = OwnCpuSeconds();
  std::thread([] {
    timespec used{};
    while (used.tv_sec == 0 && used.tv_nsec < static_cast<long>(kSome * 1e9))
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  }).join();
  EXPECT_GE(OwnCpuSeconds() - begin, kSome);
}

TEST(GuardrailTest, WithoutLimitsNothingIsHit) {
  EXPECT_FALSE(Guardrail({}).IsHit());
}

}  // namespace
}  // namespace heapprofd
