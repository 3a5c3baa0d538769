#include "trace/dump_counters.h"

#include <algorithm>

#include "profile/figures.h"
#include "trace/fields.h"
#include "trace/message_reader.h"

namespace heapprofd {

DumpStats ReadDumpStats(std::string_view message) {
  DumpStats stats;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::kStatsUnwindingErrors)
      stats.unwinding_errors = reader.Uint();
    else if (reader.field() == field::kStatsHeapSamples)
      stats.heap_samples = reader.Uint();
    else if (reader.field() == field::kStatsMapReparses)
      stats.map_reparses = reader.Uint();
    else if (reader.field() == field::kStatsUnwindingTime)
      stats.total_unwinding_time_us = reader.Uint();
    else if (reader.field() == field::kStatsSpinlockBlocked)
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

}  // namespace heapprofd
