// What a copy of the library of heap_profile.h calls of the core that records for this
// process. Several copies can meet in one process (the shared library, a plugin with the
// static archive); all use the table of the first one in the loader's list that has one
// to show, which is the preload library when it is there.
//
// A new layout gets a new function name, so that libraries of different versions do not
// find each other.
#pragma once

#include <cstdint>

#include "client/engine_link/session_watch.h"
#include "client/heaps.h"

namespace heapprofd {

struct RecorderTable {
  uint32_t (*current_session)();
  bool (*wait_for_session)(uint32_t session, const std::atomic<uint32_t>& stop);
  bool (*set_switch)(SwitchPage& page, bool is_on);
  uint8_t (*join_heap)(const char* name);
  uint64_t (*heap_interval)(uint8_t heap_id);
  // Of the site only its stack and frame pointer: other versions have no more in theirs.
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

inline constexpr char kRecorderFunction[] = "heapprofd_recorder_v2";

}  // namespace heapprofd
