// The four figures of a heap profile that a query can ask for by name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "query/flame_tree.h"

namespace heapprofd {

enum class ProfileView : uint8_t { kLiveSize, kLiveCount, kAllocSize, kAllocCount };

// Accepts pprof's names (space, alloc_space, objects, alloc_objects, also inuse_*) and
// those that Perfetto shows today ("Unreleased malloc size"), in any case.
std::optional<ProfileView> ParseView(std::string_view name);

// For messages.
inline constexpr char kViewNames[] = "space, alloc_space, objects, alloc_objects";

int64_t ValueOf(const FlameValues& values, ProfileView view);

}  // namespace heapprofd
