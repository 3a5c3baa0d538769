// aarch64: b. One instruction, so that one is all that has to move.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heapprofd {

inline constexpr size_t kJumpLength = 4;                        // bytes
inline constexpr size_t kOperandLength = 0;                     // not bytes of their own
inline constexpr int64_t kJumpReach = (int64_t{1} << 27) - 64;  // bytes

}  // namespace heapprofd
