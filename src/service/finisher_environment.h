// What the owner of a recording may say about how names are looked up and shown. The rest
// of an environment could make our libraries do something else, and stays out.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace heapprofd {

inline constexpr std::array<const char*, 11> kFinisherVariables = {
    "PERFETTO_BINARY_PATH",
    "PERFETTO_SYMBOLIZER_MODE",
    "HEAPPROFD_SYMBOLIZER",
    "DEBUGINFOD_URLS",
    "XDG_CACHE_HOME",
    "HOME",
    "HEAPPROFD_STATS_JSON",
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE"};

// `entry`: NAME=VALUE.
inline bool IsFinisherVariable(std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('='));
  return name.size() < entry.size() &&
         std::any_of(kFinisherVariables.begin(), kFinisherVariables.end(),
                     [name](const char* known) { return name == known; });
}

}  // namespace heapprofd
