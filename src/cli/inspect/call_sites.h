// Where the calls of a stack are: stacks of the same functions at different lines are
// different call sites, and those of one line at several addresses are the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "cli/inspect/sequence_numbers.h"
#include "cli/results/top_list.h"
#include "profile/model.h"

namespace heapprofd {

class CallSites {
 public:
  using Position = StackNames::Position;

  // `profile` outlives it; frames that are there have their lines already.
  explicit CallSites(const TargetProfile& profile) : profile_(profile) {}

  // The same number for stacks whose calls are all at the same places. `stack`: from the
  // holder outward (StackNames::HolderPositions), so that what a container allocates and
  // frees is its caller's.
  uint32_t SiteOf(const std::vector<Position>& stack);

  // "cache.cc:118", or "libdemo.so+0x1234" where lines are unknown.
  std::string PlaceOf(const Position& position) const;

 private:
  uint32_t PlaceNumber(const Position& position);

  const TargetProfile& profile_;
  std::map<std::string, uint32_t> places_;
  FlatMap<uint32_t> place_by_position_;
  SequenceNumbers sites_;  // of their places
};

}  // namespace heapprofd
