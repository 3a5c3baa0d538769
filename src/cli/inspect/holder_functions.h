// The functions of a profile's stacks as numbers: of millions of stacks that are kept to
// be compared, names would take gigabytes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "cli/inspect/sequence_numbers.h"
#include "cli/results/top_list.h"
#include "profile/model.h"

namespace heapprofd {

class HolderFunctions {
 public:
  using Position = StackNames::Position;

  // `profile` outlives it; frames that are there have their names already.
  explicit HolderFunctions(const TargetProfile& profile) : names_(profile) {}

  // From the holder outward (StackNames::HolderPositions).
  std::vector<Position> PositionsOf(CallsiteId callsite) {
    return names_.HolderPositions(callsite);
  }

  // The same number for stacks of the same functions, which are told apart by their names
  // and modules.
  uint32_t StackAt(const std::vector<Position>& positions);

  // Rows of functions(). Valid until the next call of StackAt.
  std::span<const uint32_t> RowsOf(uint32_t stack) const { return stacks_.At(stack); }

  const std::vector<StackFunction>& functions() const { return functions_; }

 private:
  uint32_t RowOf(const Position& position);

  StackNames names_;
  std::vector<StackFunction> functions_;
  std::map<StackFunction, uint32_t> rows_;
  FlatMap<uint32_t> row_by_position_;
  SequenceNumbers stacks_;  // of their rows
};

}  // namespace heapprofd
