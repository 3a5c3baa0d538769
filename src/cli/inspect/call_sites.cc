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
  const auto [known, is_new] =
      place_by_position_.try_emplace({position.frame, position.line}, 0);
  if (is_new)
    known->second =
        places_.try_emplace(PlaceOf(position), static_cast<uint32_t>(places_.size()))
            .first->second;
  return known->second;
}

uint32_t CallSites::SiteOf(const std::vector<Position>& stack) {
  uint32_t site = kNoId;
  for (auto position = stack.rbegin(); position != stack.rend(); ++position) {
    const std::pair step(site, PlaceNumber(*position));
    site = sites_.try_emplace(step, static_cast<uint32_t>(sites_.size())).first->second;
  }
  return site;
}

}  // namespace heapprofd
