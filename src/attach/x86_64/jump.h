// x86-64: jmp rel32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heapprofd {

inline constexpr size_t kJumpLength = 5;     // bytes
inline constexpr size_t kOperandLength = 4;  // bytes, behind the opcode
inline constexpr int64_t kJumpReach = (int64_t{1} << 31) - 64;  // bytes

}  // namespace heapprofd
