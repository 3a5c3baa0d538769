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

  // From now on until End it takes these as well.
  void Begin(TargetHeaps* heaps, const StackResolver* stacks, size_t max_live_samples);
  void End();

  uid_t user() const { return account_.user(); }

  // Its user had room for more of anything, when HasRoom looked last.
  bool has_memory() const { return has_memory_; }

  // For the next live sample of this heap, of which it has had `samples` so far.
  bool HasRoom(uint8_t heap_id, uint64_t samples);

  // Charges what it takes now.
  void Charge() { account_.Set(EstimatedBytes()); }

 private:
  // Cheap, about right.
  uint64_t EstimatedBytes() const;

  UserBudget::Account account_;
  Kept kept_;
  TargetHeaps* heaps_ = nullptr;  // this and what follows: between Begin and End
  const StackResolver* stacks_ = nullptr;
  size_t max_live_samples_ = 0;
  bool has_room_ = true;  // for more live samples
  bool has_memory_ = true;
};

}  // namespace heapprofd
