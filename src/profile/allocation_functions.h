// The functions that programs call for memory, by name. Perfetto's heap profiler has the
// one that was called as innermost frame of each stack, and so have our traces; who looks
// for memory wants its caller.
#pragma once

#include <string_view>

namespace heapprofd {

// `name` as linkers know it, or demangled.
bool IsAllocationFunction(std::string_view name);

}  // namespace heapprofd
