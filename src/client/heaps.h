// Heaps beside malloc's, as the session sees them: what the library of heap_profile.h
// (client/library/heap_profile.cc) calls for a heap that is recorded.
//
// A heap's id here is one of the process and of its forked children, the same in every
// session. Each thread has a countdown and exact totals per heap, in a slot that is found
// by hash: no thread-local memory, no lock.
#pragma once

#include <cstdint>

#include "client/recorder.h"

namespace heapprofd {

enum class ReportOutcome : uint8_t {
  kNotRecorded,
  kRecorded,
  kOtherSession,  // not recorded: the session that the caller knows is over
};

struct HeapEvent {
  Block block;
  uint64_t size = 0;             // bytes
  bool bypass_sampling = false;  // the program has sampled by itself: weight is the size
  uint32_t session = 0;          // the one that the caller knows
};

// The id of the heap with this name, the same for the same name. 0: there is no room.
uint8_t JoinHeap(const char* name);

// Sampling interval of the heap now, bytes; 0: the session does not record it.
uint64_t HeapInterval(uint8_t heap_id);

ReportOutcome ReportHeapAllocation(const HeapEvent& event, const CallSite& site);
void ReportHeapFree(const Block& block);

// kMark or kDumpNow.
void ReportMark(RecordType type, const char* name);

}  // namespace heapprofd
