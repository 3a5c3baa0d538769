// Brings what a target's profile says about a moment up to now: its heaps, their exact
// totals, and how far all of it can be trusted.
//
// One thread: the session's.
#pragma once

#include <cstdint>

#include "engine/idle/idle_memory.h"
#include "engine/target/followed_children.h"
#include "engine/target/ring_drain.h"
#include "engine/target/target_heaps.h"
#include "profile/model.h"
#include "unwind/address_space.h"
#include "wire/memory_files.h"

namespace heapprofd {

class TargetDumper {
 public:
  // What is looked at, and the profile that it is written to; all outlive it.
  struct Parts {
    TargetProfile* profile;
    SharedMemory* memory;
    TargetHeaps* heaps;
    const RingDrain* ring;
    const AddressSpace* code;
    FollowedChildren* children;
    const IdleMemory* idle = nullptr;  // nullptr: nobody asks what is idle
    bool lists_blocks = false;         // in the last dump
  };

  explicit TargetDumper(const Parts& parts)
      : parts_(parts), previous_ns_(parts.profile->process.start_ns) {}

  // Any number of times.
  void Update();

  // The same for the last time, with the shapes of blocks, which take longer, and, if
  // they are to be listed, the blocks themselves.
  void Finish();

  // The same as Update for a moment of the target, CLOCK_MONOTONIC: what has been read is
  // as of then.
  void UpdateAt(uint64_t time_ns);

 private:
  void LookAtHeaps();
  void AddIdle();
  void LookAtQuality();
  void MakeFiguresWhole();
  void Stamp(uint64_t end_ns);

  Parts parts_;
  uint64_t previous_ns_;  // CLOCK_MONOTONIC: of the last dump
};

}  // namespace heapprofd
