// How the engine tells a client that its program's memory is limited: by a small ring.
#pragma once

#include <cstdint>

namespace heapprofd {

// The ring of a session whose user has not said how large it is to be.
inline constexpr uint64_t kUsualRing = uint64_t{8} << 20;  // bytes

// A client whose ring is not larger than this takes no memory beyond what it began with.
inline constexpr uint64_t kSmallRing = uint64_t{512} << 10;  // bytes

// What a client maps with a ring of that size, about: its own memory, its blocks, and the
// ring twice. With a larger one it may also take spare memory.
inline constexpr uint64_t kSmallClient = uint64_t{4} << 20;
inline constexpr uint64_t kSpareMemory = uint64_t{11} << 20;

}  // namespace heapprofd
