#include "query/dump_values.h"

#include <gtest/gtest.h>

#include <random>

namespace heapprofd {
namespace {

constexpr uint32_t kProcesses = 3;
constexpr StringId kHeaps = 2;
constexpr uint32_t kDumps = 60;

// Dumps of all heaps at times in no order, of `most` rows at most.
ImportedTrace MadeTrace(uint32_t callsites, uint32_t most) {
  std::mt19937 random(1);
  const auto below = [&random](uint32_t end) {
    return static_cast<uint32_t>(random() % end);
  };
  ImportedTrace trace;
  for (uint32_t i = 0; i < callsites; ++i) {
    trace.callsites.parent.push_back(kNoId);
    trace.callsites.frame.push_back(0);
  }
  for (uint32_t i = 0; i < kDumps; ++i) {
    ImportedDump dump;
    dump.upid = below(kProcesses);
    dump.heap_name = below(kHeaps);
    dump.ts = below(kDumps);
    dump.first_allocation = static_cast<uint32_t>(trace.allocations.size.size());
    dump.allocation_count = below(most + 1);
    for (uint32_t row = 0; row < dump.allocation_count; ++row) {
      trace.allocations.dump.push_back(i);
      trace.allocations.callsite.push_back(below(callsites));
      trace.allocations.size.push_back(int64_t{below(5)} - 2);  // that they cancel
      trace.allocations.count.push_back(int64_t{below(3)} - 1);
    }
    trace.dumps.push_back(dump);
  }
  return trace;
}

// Few rows among many callsites, and the other way round.
TEST(HeapSums, AreThoseOfEachDump) {
  for (const auto& [callsites, most] :
       {std::pair(1000u, 3u), std::pair(1000u, 500u), std::pair(1u, 4u)}) {
    const ImportedTrace trace = MadeTrace(callsites, most);
    HeapSums sums(trace);
    for (uint32_t dump = 0; dump < kDumps; ++dump) {
      const ValuesByCallsite expected = ValuesAt(trace, dump);
      std::vector<uint32_t> with_values;
      for (uint32_t callsite = 0; callsite < callsites; ++callsite) {
        if (!expected[callsite].IsZero())
          with_values.push_back(callsite);
      }
      const std::span<const HeapSums::Row> rows = sums.At(dump);
      ASSERT_EQ(rows.size(), with_values.size()) << dump;
      for (size_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(rows[i].callsite, with_values[i]) << dump;
        const FlameValues values = expected[with_values[i]];
        EXPECT_EQ(rows[i].values.size, values.size);
        EXPECT_EQ(rows[i].values.count, values.count);
        EXPECT_EQ(rows[i].values.alloc_size, values.alloc_size);
        EXPECT_EQ(rows[i].values.alloc_count, values.alloc_count);
      }
    }
  }
}

}  // namespace
}  // namespace heapprofd
