// The heaps that a program has registered with its copy of libheapprofd_client: who of
// them is recorded, and telling their callbacks.
//
// Sessions come and go while the program runs. Whoever notices a change (a report, a
// registration, the thread that waits for the callbacks' sake) settles it: each heap that
// the new session records is enabled, each that the old one recorded disabled before.
#pragma once

#include <atomic>
#include <cstdint>

#include <heapprofd/heap_profile.h>

#include "client/recorder_table.h"
#include "rt/compiler.h"

struct AHeapInfo {
  char name[HEAPPROFD_HEAP_NAME_SZ];
  AHeapProfileEnableCallback enabled_callback;
  void* enabled_data;
  AHeapProfileDisableCallback disabled_callback;
  void* disabled_data;
  std::atomic<bool> is_registered;
  std::atomic<uint8_t> recorded_as;  // the recorder's id for it, 0: not recorded
  // Only whoever settles touches these:
  uint32_t session;  // the one it was settled for, 0: none
  long enabled_in;   // the process whose enabled callback was called
};

struct AHeapProfileEnableCallbackInfo {
  uint64_t sampling_interval;
};

struct AHeapProfileDisableCallbackInfo {
  char reserved;  // C has no empty structs
};

namespace heapprofd {

extern AHeapInfo g_heaps[kMaxHeaps];  // by id; 0 stays unused
extern SwitchPage g_switch;
extern const RecorderTable* g_recorder;  // after Start
extern std::atomic<uint32_t> g_settled_session;

// All that a call looks at while nobody records: one word, shared with the service.
inline bool IsOff() {
  return HPD_LIKELY(g_switch.word.recordings.load(std::memory_order_relaxed) == 0);
}

enum class StartState : uint32_t { kNotStarted, kStarting, kStarted };
extern std::atomic<StartState> g_start;
void StartNow();

// Finds the recorder and joins a session that is under way; once per process image.
inline void Start() {
  if (HPD_UNLIKELY(g_start.load(std::memory_order_acquire) != StartState::kStarted))
    StartNow();
}

// After Start: brings all heaps up to the session that is under way.
void Settle();

// The same when there is another session than at the last time; true if so.
inline bool SettleIfChanged() {
  if (HPD_LIKELY(g_recorder->current_session() ==
                 g_settled_session.load(std::memory_order_acquire)))
    return false;
  Settle();
  return true;
}

// A slot for a heap with this name; nullptr: the name is bad or there are too many heaps.
AHeapInfo* AddHeap(const char* name);

uint32_t RegisterHeap(AHeapInfo& heap);

// Ends the waiting thread: the library may be unloaded.
void StopWatching();

// The recorder's id of a heap that is recorded, else 0.
inline uint8_t RecordedAs(uint32_t heap_id) {
  return heap_id < kMaxHeaps
             ? g_heaps[heap_id].recorded_as.load(std::memory_order_acquire)
             : uint8_t{0};
}

}  // namespace heapprofd
