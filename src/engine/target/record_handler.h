// What each kind of record means: samples, frees, marks and requests of one target, in
// the order of its ring.
//
// The target is hostile: every record is checked, everything it can make grow is bounded.
//
// One thread: the session's.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/stacks/stack_resolver.h"
#include "engine/target/allocation_events.h"
#include "engine/target/program_requests.h"
#include "engine/target/target_account.h"
#include "engine/target/target_dumper.h"
#include "engine/target/target_heaps.h"
#include "engine/target/thread_table.h"
#include "engine/tsc_clock.h"
#include "profile/model.h"
#include "wire/ring_reader.h"

namespace heapprofd {

// The sink of RingDrain::Read.
class RecordHandler {
 public:
  // What records act on; all outlive it.
  struct Parts {
    TargetProfile* profile;
    const TscClock* clock;
    TargetHeaps* heaps;
    StackResolver* stacks;
    TargetAccount* account;
    ProgramRequests* requests;
    TargetDumper* dumper;
  };

  // `knows_threads`: the process has the same thread ids for itself as it has for us.
  RecordHandler(const Parts& parts, bool knows_threads);

  // nullptr: nobody wants them. They outlive it.
  void set_events(AllocationEvents* events) { events_ = events; }

  // False: it is damaged.
  bool Handle(const RingReader::Record& record);

  // Of a record that is read soon: the live block and the stack. `words` may be anything.
  void Prefetch(RecordType type, std::span<const uint64_t> words) const;

  // Grows with each record that took long to handle.
  uint64_t dear_steps() const { return dear_dumps_ + parts_.stacks->dear_steps(); }

 private:
  bool HandleSample(std::span<const std::byte> payload);
  bool HandleFree(std::span<const std::byte> payload);
  bool HandleUndo(std::span<const std::byte> payload);
  bool HandleMark(std::span<const std::byte> payload, bool is_dump);
  void ReportAllocation(const SampleRecord& record);
  void MakeDump();

  void NoteTime(uint64_t tsc) {
    last_event_ns_ = std::max(last_event_ns_, parts_.clock->ToNs(tsc));
  }

  bool HasRoom(uint8_t heap_id) {
    return parts_.account->HasRoom(heap_id, parts_.profile->quality.samples);
  }

  bool IsSettled() const;

  Parts parts_;
  ThreadTable threads_;
  AllocationEvents* events_ = nullptr;
  uint64_t last_event_ns_ = 0;  // CLOCK_MONOTONIC; never goes back
  uint64_t dear_dumps_ = 0;     // that were asked for
};

}  // namespace heapprofd
