#include "profile/allocation_functions.h"

#include <algorithm>
#include <iterator>

namespace heapprofd {

bool IsAllocationFunction(std::string_view name) {
  constexpr std::string_view kNames[] = {"malloc",
                                         "calloc",
                                         "realloc",
                                         "reallocarray",
                                         "memalign",
                                         "aligned_alloc",
                                         "posix_memalign",
                                         "valloc",
                                         "pvalloc",
                                         "mallocx",
                                         "rallocx",
                                         "xallocx",
                                         "AHeapProfile_reportAllocation",
                                         "AHeapProfile_reportSample"};
  constexpr std::string_view kPrefixes[] = {"operator new(", "operator new[](", "_Znwm",
                                            "_Znam"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace heapprofd
