#include "profile/module_offset.h"

#include <array>
#include <cinttypes>
#include <cstdio>

#include "base/text.h"

namespace heapprofd {
namespace {

std::string ModuleName(const TargetProfile& profile, const Frame& frame) {
  if (frame.mapping == kNoId)
    return "[unknown]";
  const std::string& path = profile.mappings[frame.mapping].path;
  return path.empty() ? "[anonymous]" : std::string(FileName(path));
}

}  // namespace

std::string ModuleOffset(const TargetProfile& profile, const Frame& frame) {
  std::array<char, 32> offset{};
  snprintf(offset.data(), offset.size(), "+0x%" PRIx64, frame.rel_pc);
  return ModuleName(profile, frame) + offset.data();
}

}  // namespace heapprofd
