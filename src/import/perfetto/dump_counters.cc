#include "import/perfetto/dump_counters.h"

#include <algorithm>
#include <iterator>

#include "profile/figures.h"
#include "trace/fields.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

using UnwindField = field::ProfilePacket::ProcessStats;

}  // namespace

DumpStats ReadDumpStats(std::string_view message) {
  DumpStats stats;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == UnwindField::kUnwindingErrors)
      stats.unwinding_errors = reader.Uint();
    else if (reader.field() == UnwindField::kHeapSamples)
      stats.heap_samples = reader.Uint();
    else if (reader.field() == UnwindField::kMapReparses)
      stats.map_reparses = reader.Uint();
    else if (reader.field() == UnwindField::kTotalUnwindingTimeUs)
      stats.total_unwinding_time_us = reader.Uint();
    else if (reader.field() == UnwindField::kClientSpinlockBlockedUs)
      stats.client_spinlock_blocked_us = reader.Uint();
  }
  return stats;
}

Quality ReadDumpQuality(std::string_view message) {
  Quality quality;
  MessageReader reader(message);
  while (reader.Next()) {
    const auto* const figure =
        std::find_if(kFigures.begin(), kFigures.end(),
                     [&](const Figure& one) { return one.field == reader.field(); });
    if (figure != kFigures.end())
      quality.*figure->value = reader.Uint();
  }
  return quality;
}

void ImportUnsampledChildren(TraceBuilder& builder, std::string_view message) {
  constexpr size_t kMaxUnsampledChildren = size_t{1} << 20;  // a hostile file's
  if (builder.trace().unsampled_children.size() >= kMaxUnsampledChildren)
    return;
  int64_t pid = 0;
  int64_t profiling_start = 0;
  ImportedChildren row;
  uint64_t* const counts[] = {&row.counts.count, &row.counts.uncounted,
                              &row.counts.alloc_calls, &row.counts.alloc_bytes};
  MessageReader reader(message);
  while (reader.Next()) {
    const uint32_t count = reader.field() - field::UnsampledChildren::kCount;
    if (reader.field() == field::UnsampledChildren::kPid)
      pid = reader.Int();
    else if (reader.field() == field::UnsampledChildren::kProfilingStart)
      profiling_start = reader.Int();
    else if (count < std::size(counts))
      *counts[count] = reader.Uint();
  }
  row.upid = builder.processes().ImageOf(pid, profiling_start);
  builder.trace().unsampled_children.push_back(row);
}

}  // namespace heapprofd
