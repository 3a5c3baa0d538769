#include "cli/inspect/call_sites.h"

#include "base/text.h"
#include "profile/module_offset.h"

namespace heapprofd {

std::string CallSites::PlaceOf(const Position& position) const {
  const Frame& row = profile_.frames[position.frame];
  if (position.line < row.lines.size() && row.lines[position.line].line != 0 &&
      !row.lines[position.line].file.empty())
    return std::string(FileName(row.lines[position.line].file)) + ":" +
           std::to_string(row.lines[position.line].line);
  return ModuleOffset(profile_, row);
}

uint32_t CallSites::PlaceNumber(const Position& position) {
  const auto [number, is_new] = place_by_position_.Insert(position.key(), 0);
  if (is_new)
    *number =
        places_.try_emplace(PlaceOf(position), static_cast<uint32_t>(places_.size()))
            .first->second;
  return *number;
}

uint32_t CallSites::SiteOf(const std::vector<Position>& stack) {
  return sites_.OfEach(
      stack, [this](const Position& position) { return PlaceNumber(position); });
}

}  // namespace heapprofd
