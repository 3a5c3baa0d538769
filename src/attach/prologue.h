// Moving the first instructions of a function elsewhere, so that a jump can stand in
// their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

namespace heapprofd {

inline constexpr size_t kJumpLength = 5;                        // bytes of jmp rel32
inline constexpr int64_t kJumpReach = (int64_t{1} << 31) - 64;  // bytes

struct MovedPrologue {
  size_t length = 0;          // bytes of whole instructions that the jump replaces
  std::vector<uint8_t> code;  // the same, made to run at the new place, and a jump back
};

// `bytes` is the function's code, which begins at `address`, or as much of it as is
// known; the copy is to run at `new_address`. kUnavailable: these instructions cannot be
// moved, and why.
Result<MovedPrologue> MovePrologue(std::span<const uint8_t> bytes,
                                   uint64_t address,
                                   uint64_t new_address);

// Where the instructions begin that MovePrologue has moved: offsets in `original`, which
// are those bytes, and in the copy.
std::vector<std::pair<size_t, size_t>> MovedInstructions(
    std::span<const uint8_t> original, uint64_t address, uint64_t new_address);

// Bytes in front of which nothing can be hooked: a marker for indirect branches
// (endbr64), which must stay where it is. 0 or 4.
size_t SkippedPrefix(std::span<const uint8_t> bytes);

// jmp rel32 from `address` to `target`, filled up with no-operations to `length` bytes;
// empty when it is out of reach.
std::vector<uint8_t> MakeJump(uint64_t address, uint64_t target, size_t length);

}  // namespace heapprofd
