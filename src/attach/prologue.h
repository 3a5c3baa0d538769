// Moving the first instructions of a function elsewhere, so that a jump can stand in
// their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

// The jump that stands at a function's begin while it is hooked
// (docs/design/architectures.md).
#if defined(__x86_64__)
#include "attach/x86_64/jump.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "attach/aarch64/jump.h"  // IWYU pragma: export
#endif

namespace heapprofd {

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

// Bytes in front of which nothing can be hooked: a marker for indirect branches (endbr64,
// bti, paciasp), which must stay where it is. 0 or 4.
size_t SkippedPrefix(std::span<const uint8_t> bytes);

// What such bytes do beyond marking: instructions that undo it for the hook, which expects
// what a function finds at its begin, and that do it again for the moved instructions.
struct PrefixEffect {
  std::vector<uint8_t> undo;  // empty: nothing
  std::vector<uint8_t> redo;
};

PrefixEffect EffectOfPrefix(std::span<const uint8_t> prefix);

// Whether a function returns at once, and nobody's code is in what follows of its first
// `length` bytes.
bool DoesNothing(std::span<const uint8_t> bytes, size_t length);

// Where a jump (kJumpLength) leads that stands at `address`; nullopt: `bytes` begin with none.
std::optional<uint64_t> JumpTarget(std::span<const uint8_t> bytes, uint64_t address);

// A jump (kJumpLength) from `address` to `target`, filled up with no-operations to `length`
// bytes; empty when it is out of reach.
std::vector<uint8_t> MakeJump(uint64_t address, uint64_t target, size_t length);

// A jump from anywhere to anywhere.
std::vector<uint8_t> MakeFarJump(uint64_t target);

}  // namespace heapprofd
