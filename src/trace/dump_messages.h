// ProcessHeapSamples: the header and the samples of one heap at one moment, serialized.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

enum class DumpMode : uint8_t {
  kCumulative,  // allocated and freed so far
  kPeak,        // only what was live when the total was highest (--dump-at-max)
};

struct DumpFlags {
  bool disconnected = false;
  bool buffer_overran = false;
  bool buffer_corrupted = false;
  DumpMode mode = DumpMode::kCumulative;
  std::string label = {};  // of the dump; may be empty
};

// Between what moments a heap has changed as a dump tells; CLOCK_MONOTONIC.
struct DumpInterval {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

// Last values written for a callstack: later ones never fall below them.
struct WrittenTotals {
  uint64_t allocated = 0;
  uint64_t freed = 0;
  uint64_t alloc_count = 0;
  uint64_t free_count = 0;
};

// Everything of ProcessHeapSamples but the samples.
std::string DumpHeader(const TargetProfile& profile,
                       const HeapDump& dump,
                       const DumpInterval& interval,
                       const DumpFlags& flags);

// Of a callsite, beside its totals; nullptr: there is nothing.
struct SampleExtras {
  const Estimate* peak = nullptr;
  const Estimate* idle = nullptr;
};

// Appends a sample with cumulative values to a ProcessHeapSamples.
void AppendSample(std::string& process_dump,
                  uint64_t callstack_iid,
                  const CallsiteTotals& totals,
                  const SampleExtras& extras,
                  WrittenTotals& written);

// Appends a sample of a dump at the maximum; the cumulative values go to fields of ours.
void AppendPeakSample(std::string& process_dump,
                      uint64_t callstack_iid,
                      const SampleExtras& extras,
                      const CallsiteTotals& totals);

// Appends what a thread has allocated, and what of that was freed by whomever, to a
// ProcessHeapSamples.
void AppendThread(std::string& process_dump,
                  const ThreadDescription& thread,
                  const CallsiteTotals& totals);

// Appends a row of a histogram to a ProcessHeapSamples. `tid`: of its thread; 0: unknown.
void AppendShape(std::string& process_dump,
                 uint64_t callstack_iid,
                 const ShapeRow& row,
                 uint32_t tid);

// Blocks in one message.
inline constexpr size_t kBlocksTogether = 1024;

// Appends at most kBlocksTogether blocks, in the order of their addresses, to a
// ProcessHeapSamples; `callstack_iids`: of each.
void AppendBlocks(std::string& process_dump,
                  std::span<const LiveBlock> blocks,
                  const std::vector<uint64_t>& callstack_iids);

}  // namespace heapprofd
