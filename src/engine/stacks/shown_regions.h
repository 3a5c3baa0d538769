// Tells the client which memory may hold stacks that are not a thread's own (sigaltstack,
// fibers), for it to walk them (wire/shared_memory.h: StackRegions).
//
// One thread: the session's. The client reads while it is written, and goes by the
// version.
#pragma once

#include <cstdint>

#include "engine/tsc_clock.h"
#include "unwind/address_space.h"
#include "wire/shared_memory.h"

namespace heapprofd {

class ShownRegions {
 public:
  // All outlive it.
  ShownRegions(StackRegions* shown, AddressSpace* code, const TscClock* clock)
      : shown_(shown), code_(code), clock_(clock) {}

  // A stack has not been found in them. Reads the maps anew unless that was done a moment
  // ago or is too dear; false: then there is nothing new to show.
  bool LookAgain();

  // As the maps were read last.
  void Show();

 private:
  StackRegions* shown_;
  AddressSpace* code_;
  const TscClock* clock_;
  uint64_t shown_ns_ = 0;  // when; 0: never yet
  uint32_t version_ = 0;   // as it was published last
};

}  // namespace heapprofd
