#include "cli/inspect/call_sites.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/text.h"

namespace heapprofd {

std::string CallSites::PlaceOf(FrameId frame, uint32_t line) const {
  const Frame& row = profile_.frames[frame];
  if (line < row.lines.size() && row.lines[line].line != 0 &&
      !row.lines[line].file.empty())
    return std::string(FileName(row.lines[line].file)) + ":" +
           std::to_string(row.lines[line].line);
  char offset[32];
  snprintf(offset, sizeof(offset), "+%#llx", static_cast<unsigned long long>(row.rel_pc));
  const std::string path =
      row.mapping == kNoId ? "" : profile_.mappings[row.mapping].path;
  return (path.empty() ? "[unknown]" : std::string(FileName(path))) + offset;
}

uint32_t CallSites::PlaceNumber(FrameId frame) {
  const auto [known, is_new] = place_by_frame_.try_emplace(frame, 0);
  if (is_new) {
    const auto lines =
        static_cast<uint32_t>(std::max<size_t>(1, profile_.frames[frame].lines.size()));
    std::string place;  // inlined calls are places, too
    for (uint32_t line = 0; line < lines; ++line)
      place += PlaceOf(frame, line) + "\n";
    known->second =
        places_.try_emplace(place, static_cast<uint32_t>(places_.size())).first->second;
  }
  return known->second;
}

uint32_t CallSites::SiteOf(CallsiteId callsite) {
  std::vector<CallsiteId> unknown;
  uint32_t site = kNoId;
  for (; callsite != kNoId; callsite = profile_.callsites[callsite].parent) {
    const auto known = site_by_callsite_.find(callsite);
    if (known != site_by_callsite_.end()) {
      site = known->second;
      break;
    }
    unknown.push_back(callsite);
  }
  for (auto at = unknown.rbegin(); at != unknown.rend(); ++at) {
    const std::pair step(site, PlaceNumber(profile_.callsites[*at].frame));
    site = sites_.try_emplace(step, static_cast<uint32_t>(sites_.size())).first->second;
    site_by_callsite_[*at] = site;
  }
  return site;
}

}  // namespace heapprofd
