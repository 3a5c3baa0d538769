#include "cli/inspect/holder_functions.h"

namespace heapprofd {

uint32_t HolderFunctions::StackAt(const std::vector<Position>& positions) {
  return stacks_.OfEach(positions,
                        [this](const Position& position) { return RowOf(position); });
}

uint32_t HolderFunctions::RowOf(const Position& position) {
  const auto [row, is_new] = row_by_position_.Insert(position.key(), 0);
  if (!is_new)
    return *row;
  StackFunction function = names_.FunctionAt(position);
  *row =
      rows_.try_emplace(function, static_cast<uint32_t>(functions_.size())).first->second;
  if (*row == functions_.size())
    functions_.push_back(std::move(function));
  return *row;
}

}  // namespace heapprofd
