// What is only there while a target is recorded: its shared memory, the turns in which
// its ring is read, and the upkeep of what its client goes by.
//
// One thread: the session's. The shared memory is the engine's end of it; the mutex in it
// (wire/shared_memory.h: engine_lock) is held by the thread that created it, unless the
// target has created it itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "engine/idle/idle_looks.h"
#include "engine/session_config.h"
#include "engine/stacks/stack_resolver.h"
#include "engine/target/allocation_events.h"
#include "engine/target/followed_children.h"
#include "engine/target/interval_governor.h"
#include "engine/target/memory_observer.h"
#include "engine/target/program_requests.h"
#include "engine/target/published_config.h"
#include "engine/target/record_handler.h"
#include "engine/target/ring_drain.h"
#include "engine/target/target_account.h"
#include "engine/target/target_dumper.h"
#include "engine/target/target_heaps.h"
#include "engine/tsc_clock.h"
#include "profile/model.h"
#include "unwind/address_space.h"
#include "wire/memory_files.h"

namespace heapprofd {

class TargetRecorder {
 public:
  // What stays when the recording is over; all outlive it.
  struct Kept {
    TargetProfile* profile;
    AddressSpace* code;
    TargetAccount* account;
    ProgramRequests* requests;
    FollowedChildren* children;
    const TscClock* clock;
  };

  // From now on the client may record. `knows_threads`: see RecordHandler.
  TargetRecorder(std::unique_ptr<SharedMemory> memory,
                 const SessionConfig& config,
                 const Kept& kept,
                 bool knows_threads);

  SharedMemory& memory() { return *memory_; }

  const RingDrain& ring() const { return ring_; }

  // What they say goes to the profile, or to the next dump.
  MemoryObserver& observer() { return observer_; }

  IdleLooks& idle() { return idle_; }

  // Outlive this object. nullptr: nobody wants them.
  void set_events(AllocationEvents* events) { handler_.set_events(events); }

  static constexpr uint64_t kDrainNs = 50'000'000;

  // Reads what is in the ring, at most `max_records` and for about `turn_ns`, and returns
  // how many there were. `writers_gone`: the process has ended, nothing can be pending.
  size_t Drain(size_t max_records, bool writers_gone, uint64_t turn_ns = kDrainNs);

  // A turn of reading up to there (RingDrain::RestEnd); true: done. What is not read may
  // be given up: it counts as lost then.
  bool DrainRest(uint64_t end, bool writers_gone, uint64_t turn_ns = kDrainNs);

  void LoseRest(bool writers_gone) { ring_.Lose(writers_gone); }

  // Of the engine's heart: it moves.
  void Beat();

  // The same, and upkeep of the shared parameters; every loop. What takes longer is done
  // before `end_ns` (CLOCK_MONOTONIC), or later.
  void Tick(uint64_t end_ns);

  // The session is over for this target: the client goes dormant at its next sampled
  // call.
  void Stop();

  // Brings the profile's heaps and quality up to now. May be called any number of times.
  void UpdateDump() { dumper_.Update(); }

  // The last one.
  void FinishDump() { dumper_.Finish(); }

  // Brings the profile's memory up to now, the allocator's answer included.
  void ReadMemory() { observer_.Read(LiveBytes()); }

  // Of all recorded heaps together; no more than the exact totals allow.
  double LiveBytes() const { return heaps_.LiveBytes(); }

  // False: the process was welcomed, and its client has not begun, which it does at once
  // if it can map the shared memory.
  bool has_client() const;

  UnprofiledCounts unprofiled_children() const;

  uint64_t lost_records() const;

  // Ends this: nothing else may be called.
  std::unique_ptr<SharedMemory> TakeMemory() { return std::move(memory_); }

 private:
  void LookAtExit(uint64_t turn_ns);

  std::unique_ptr<SharedMemory> memory_;
  TargetAccount* account_;
  bool looks_at_exit_;
  PublishedConfig published_;
  TargetHeaps heaps_;
  RingDrain ring_;
  StackResolver stacks_;
  IdleLooks idle_;
  TargetDumper dumper_;
  RecordHandler handler_;
  IntervalGovernor governor_;
  MemoryObserver observer_;
  std::optional<uint64_t> exit_end_;  // of what the program had written when it ended
};

}  // namespace heapprofd
