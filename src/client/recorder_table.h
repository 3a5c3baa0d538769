// What a copy of the library of heap_profile.h calls of the core that records for this
// process. Several copies can meet in one process (the shared library, a plugin with the
// static archive); when the preload library is there, it is the one that records, and all
// copies use its table.
//
// A new layout gets a new function name, so that libraries of different versions do not
// find each other.
#pragma once

#include <cstdint>

#include "client/heaps.h"

namespace heapprofd {

struct RecorderTable {
  bool (*is_recording)();
  uint8_t (*join_heap)(const char* name);
  uint64_t (*heap_interval)(uint8_t heap_id);
  ReportOutcome (*report_allocation)(const HeapEvent& event, const CallSite& site);
  void (*report_free)(const Block& block);
  void (*begin_nested)(uint8_t heap_id);
  void (*end_nested)();
  void (*push_label)(const char* key, const char* value);
  void (*pop_label)();
  void (*report_mark)(RecordType type, const char* name);
};

// The table of the core in this library.
const RecorderTable& OwnRecorder();

inline constexpr char kRecorderFunction[] = "heapprofd_recorder_v1";

}  // namespace heapprofd
