// Pages of a mapped file that are gone when they are read: the file was shortened
// meanwhile, or its disk fails. Instead of ending the program with SIGBUS they read as
// zeros, and it can be asked for.
#pragma once

#include <cstddef>
#include <string_view>

namespace heapprofd::hprof {

inline constexpr size_t kMostGuarded = 64;

// For a mapping that lasts until Unguard. False: there are kMostGuarded already.
[[nodiscard]] bool GuardPages(std::string_view mapping);
void UnguardPages(std::string_view mapping);

// The rest of it, from some page on, reads as zeros.
bool HasLostPages(std::string_view mapping);

}  // namespace heapprofd::hprof
