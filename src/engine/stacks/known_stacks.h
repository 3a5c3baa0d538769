// Stacks that clients may name by their hash (walk/stack_hash.h): every stack that has
// arrived, and the outer parts of each.
//
// When all are forgotten, records that are on their way in the ring still mean them, so
// the stacks before are kept until those records have been read.
//
// One thread: the session's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/flat_map.h"
#include "profile/model.h"

namespace heapprofd {

class KnownStacks {
 public:
  static constexpr size_t kMaxStacks = 4'000'000;

  bool is_full() const { return stacks_.size() >= kMaxStacks; }

  // nullptr: there is none. The pointer ends with the next change.
  const CallsiteId* Find(uint64_t hash) { return stacks_.Find(hash); }

  // The same among those that have been forgotten and may still be meant.
  const CallsiteId* FindForgotten(uint64_t hash) { return forgotten_.Find(hash); }

  void Insert(uint64_t hash, CallsiteId callsite) { stacks_.Insert(hash, callsite); }

  // Ring positions: records have been read up to `position`; those before `end` may mean
  // what is forgotten now.
  void Forget(uint64_t position, uint64_t end);

  // Lets the processor fetch what the next look-up of this hash will read.
  void Prefetch(uint64_t hash) const { stacks_.Prefetch(hash); }

  // What they take of our memory.
  size_t bytes() const { return stacks_.bytes() + forgotten_.bytes(); }

 private:
  FlatMap<CallsiteId> stacks_;
  FlatMap<CallsiteId> forgotten_;
  uint64_t forgotten_end_ = 0;  // ring position: records before it may mean these
};

}  // namespace heapprofd
