// Functions that hold memory only on behalf of their callers: allocators, their wrappers
// and the containers of standard libraries. Lists of who holds memory look through them.
#pragma once

#include <string_view>

namespace heapprofd {

// `name` as people read it, with or without return type and parameters.
bool IsAllocatorInternal(std::string_view name);

}  // namespace heapprofd
