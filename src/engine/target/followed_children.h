// Children of one target that have no session of their own: they count in its memory
// (engine/target/forked_children.h), also when it has ended itself.
//
// One thread: the session's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/ended_owners.h"
#include "engine/left_memory.h"
#include "profile/model.h"
#include "profile/unrecorded_programs.h"
#include "wire/memory_files.h"
#include "wire/shared_memory.h"

namespace heapprofd {

// What a process counts of those that it has begun and that never ask for a session.
struct UnprofiledChildren {
  UnrecordedReason reason;
  std::atomic<uint32_t> RingHeader::*counter;
};

inline constexpr std::array kUnprofiledChildren = {
    UnprofiledChildren{UnrecordedReason::kConfined, &RingHeader::confined_children},
    UnprofiledChildren{UnrecordedReason::kOutOfReach, &RingHeader::unreached_children},
    UnprofiledChildren{UnrecordedReason::kNoDescriptor,
                       &RingHeader::children_without_descriptor},
};

// In the same order.
using UnprofiledCounts = std::array<uint32_t, kUnprofiledChildren.size()>;

// Bounded.
UnprofiledCounts CountUnprofiled(const ClientBlock& client);

class FollowedChildren {
 public:
  // `is_wanted`: children are recorded. `counted` is kept up to date, and outlives it.
  FollowedChildren(bool is_wanted, ForkedChildren* counted)
      : is_wanted_(is_wanted), counted_(counted) {}

  void Count(const ClientBlock& client);

  // Slots of those that have ended are used again: a step of looking for them, until
  // `end_ns` (CLOCK_MONOTONIC) at most. How long it takes is the target's choice.
  void FreeSlots(ClientBlock& client, uint64_t end_ns);

  // That is under way, and takes memory and descriptors.
  bool is_looking() const { return ended_owners_ != nullptr; }

  // The target has ended. Keeps a descriptor of its memory if children of it may still
  // count there. `may_begin`: also those that have counted nothing yet, as one that was
  // attached to may have: they go there when they do, and report to nobody.
  void Keep(std::unique_ptr<SharedMemory> memory, bool may_begin);

  // It does.
  bool are_left() const { return left_memory_ != nullptr; }

  // Then: where. nullptr: there is none, or it could not be mapped.
  const ClientBlock* left() const {
    return left_memory_ != nullptr ? left_memory_->client() : nullptr;
  }

  // Then: looks whether they still count.
  void LookAfter();

  // Then: counts them for the last time.
  void Leave();

  // What it had counted then.
  const UnprofiledCounts& unprofiled() const { return unprofiled_; }

 private:
  bool is_wanted_;
  ForkedChildren* counted_;
  std::unique_ptr<EndedOwners> ended_owners_;  // while they are looked for
  uint64_t slots_next_ns_ = 0;                 // to be looked at
  std::unique_ptr<LeftMemory> left_memory_;
  UnprofiledCounts unprofiled_ = {};
};

}  // namespace heapprofd
