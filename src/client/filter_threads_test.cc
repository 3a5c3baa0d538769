// Insertions and removals by several threads on the same bits: a thread always finds its
// own addresses, and when all are removed no bit is left.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "client/filter.h"

namespace heapprofd {
namespace {

constexpr uint64_t kThreads = 4;
constexpr uint64_t kAddresses = 4;  // live at once, per thread: half the bucket in all
constexpr int kRounds = 500'000;

// One bucket, four of its bits, every one shared by all threads.
uint64_t AddressOf(uint64_t thread, uint64_t n) {
  constexpr uint64_t kGranule = 0x2a5e0;
  const uint64_t high = 1 + thread;
  return high << 24 | (((kGranule + n) ^ high) & 0xfffff) << 4;
}

// Returns how often the filter was wrong about an address of this thread.
uint64_t UseFilter(SampledFilter& filter, uint64_t thread) {
  std::mt19937_64 random(thread);
  bool is_live[kAddresses] = {};
  uint64_t errors = 0;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t n = random() % kAddresses;
    const uint64_t address = AddressOf(thread, n);
    if (is_live[n]) {
      errors += filter.MayContain(address) ? 0u : 1u;
      errors += filter.Remove(address) ? 0u : 1u;
    } else {
      errors += filter.Remove(address) ? 1u : 0u;
      filter.Insert(address);
      errors += filter.MayContain(address) ? 0u : 1u;
    }
    is_live[n] = !is_live[n];
  }
  for (uint64_t n = 0; n < kAddresses; ++n) {
    if (is_live[n])
      errors += filter.Remove(AddressOf(thread, n)) ? 0u : 1u;
  }
  return errors;
}

TEST(FilterThreadsTest, ThreadsThatShareBitsNeverLoseEachOthersAddresses) {
  const auto memory = std::make_unique<std::byte[]>(SampledFilter::kMoreBytes);
  const auto filter = std::make_unique<SampledFilter>();
  filter->GiveMemory(memory.get());
  std::atomic<uint64_t> errors = 0;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] { errors += UseFilter(*filter, thread); });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(errors.load(), 0u);
  for (uint64_t n = 0; n < kAddresses; ++n)
    EXPECT_FALSE(filter->MayContain(AddressOf(0, n))) << n;
}

}  // namespace
}  // namespace heapprofd
