#include "cli/inspect/call_sites.h"

#include <cstdio>

#include "base/text.h"

namespace heapprofd {

std::string CallSites::PlaceOf(const Position& position) const {
  const Frame& row = profile_.frames[position.frame];
  if (position.line < row.lines.size() && row.lines[position.line].line != 0 &&
      !row.lines[position.line].file.empty())
    return std::string(FileName(row.lines[position.line].file)) + ":" +
           std::to_string(row.lines[position.line].line);
  char offset[32];
  snprintf(offset, sizeof(offset), "+%#llx", static_cast<unsigned long long>(row.rel_pc));
  const std::string path =
      row.mapping == kNoId ? "" : profile_.mappings[row.mapping].path;
  return (path.empty() ? "[unknown]" : std::string(FileName(path))) + offset;
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
