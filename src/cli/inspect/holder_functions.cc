#include "cli/inspect/holder_functions.h"

namespace heapprofd {

uint32_t HolderFunctions::StackAt(const std::vector<Position>& positions) {
  std::vector<uint32_t> rows;
  rows.reserve(positions.size());
  for (const Position& position : positions)
    rows.push_back(RowOf(position));
  return stacks_.Of(rows);
}

uint32_t HolderFunctions::RowOf(const Position& position) {
  const uint64_t key = uint64_t{position.frame} << 32 | position.line;
  if (const uint32_t* known = row_by_position_.Find(key))
    return *known;
  StackFunction function = names_.FunctionAt(position);
  const auto [row, is_new] =
      rows_.try_emplace(function, static_cast<uint32_t>(functions_.size()));
  if (is_new)
    functions_.push_back(std::move(function));
  row_by_position_.Insert(key, row->second);
  return row->second;
}

}  // namespace heapprofd
