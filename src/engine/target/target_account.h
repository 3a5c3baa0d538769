// What a target takes of the engine's memory, and whether it may take more: against the
// limits of its user, whose other targets share them.
//
// One thread: the session's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "engine/user_budget.h"
#include "profile/model.h"
#include "unwind/address_space.h"

namespace heapprofd {

class IdleMemory;
class ProgramRequests;
class StackResolver;
class TargetHeaps;

class TargetAccount {
 public:
  // What stays when the target has ended. All outlive it.
  struct Kept {
    const TargetProfile* profile;
    const ProgramRequests* requests;
    const AddressSpace* code;
  };

  TargetAccount(uid_t user, const Kept& kept)
      : account_(&UserBudget::OfEngine(), user), kept_(kept) {}

  // What there is while it is recorded.
  struct Recorded {
    TargetHeaps* heaps = nullptr;
    const StackResolver* stacks = nullptr;
    const IdleMemory* idle = nullptr;  // nullptr: nobody asks what is idle
    size_t max_live_samples = 0;
  };

  // From now on until End it takes these as well.
  void Begin(const Recorded& recorded) { recorded_ = recorded; }

  void End();

  uid_t user() const { return account_.user(); }

  // Its user had room for more of anything, when HasRoom looked last.
  bool has_memory() const { return has_memory_; }

  // For the next live sample of this heap, of which it has had `samples` so far.
  bool HasRoom(uint8_t heap_id, uint64_t samples);

  bool HasRoomFor(uint64_t bytes) const { return account_.HasRoom(bytes); }

  // Charges what it takes now.
  void Charge() { account_.Set(EstimatedBytes()); }

 private:
  // Cheap, about right.
  uint64_t EstimatedBytes() const;

  UserBudget::Account account_;
  Kept kept_;
  Recorded recorded_;     // between Begin and End
  bool has_room_ = true;  // for more live samples
  bool has_memory_ = true;
};

}  // namespace heapprofd
