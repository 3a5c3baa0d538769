#include "tables/process_rows.h"

#include <gtest/gtest.h>

#include <random>

namespace heapprofd {
namespace {

std::vector<uint32_t> Listed(std::span<const uint32_t> rows) {
  return {rows.begin(), rows.end()};
}

TEST(ProcessRows, AreThoseOfLookingThroughAll) {
  constexpr uint32_t kProcesses = 7;
  constexpr StringId kHeaps = 3;
  std::mt19937 random(1);
  const auto below = [&random](uint32_t end) {
    return static_cast<uint32_t>(random() % end);
  };
  ImportedTrace trace;
  for (int i = 0; i < 300; ++i) {
    ImportedDump dump;
    dump.upid = below(kProcesses);
    dump.heap_name = below(kHeaps);
    trace.dumps.push_back(dump);
    trace.counters.push_back({.upid = below(kProcesses)});
    trace.unsampled_children.push_back(
        {.upid = below(kProcesses), .counts = {.count = static_cast<uint64_t>(i)}});
  }
  const ProcessRows rows(trace);
  for (uint32_t upid = 0; upid <= kProcesses; ++upid) {
    std::vector<std::vector<uint32_t>> of_heap(kHeaps + 1);
    size_t dumps = 0;
    std::vector<uint32_t> counters;
    for (uint32_t row = 0; row < trace.dumps.size(); ++row) {
      if (trace.dumps[row].upid == upid) {
        of_heap[trace.dumps[row].heap_name].push_back(row);
        ++dumps;
      }
      if (trace.counters[row].upid == upid)
        counters.push_back(row);
    }
    EXPECT_EQ(rows.DumpsOf(upid).size(), dumps);
    for (StringId heap = 0; heap <= kHeaps; ++heap)
      EXPECT_EQ(Listed(rows.DumpsOf(upid, heap)), of_heap[heap]) << upid << " " << heap;
    EXPECT_EQ(Listed(rows.CountersOf(upid)), counters) << upid;
    const ForkedChildren* children = nullptr;
    for (const ImportedChildren& of : trace.unsampled_children)
      children = of.upid == upid ? &of.counts : children;
    EXPECT_EQ(rows.ChildrenOf(upid), children) << upid;
  }
}

TEST(ProcessRows, OfNothing) {
  const ImportedTrace trace;
  const ProcessRows rows(trace);
  EXPECT_TRUE(rows.DumpsOf(0).empty());
  EXPECT_TRUE(rows.DumpsOf(0, kEmptyString).empty());
  EXPECT_TRUE(rows.CountersOf(0).empty());
}

}  // namespace
}  // namespace heapprofd
