// The begin of a function that is hooked: its first instruction stays where it is, a jump
// to the hook stands behind that, and a copy of what both were, the gate, leads on.
//
//   entry:  first instruction │ jump to the stub │ the rest of the function
//   stub:   undo of the first instruction │ jump to the hook
//   gate:   first instruction │ what the jump has replaced │ jump to the rest
//
// A kernel probe (uprobe) puts a breakpoint over the first byte. The kernel then runs the
// first instruction of the FILE elsewhere and goes on behind it, and puts the file's byte
// back when the probe goes. So that byte is never ours, and every plan is made of the
// file's bytes (docs/design/attach.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"

// The jump that stands in a function while it is hooked (docs/design/architectures.md).
#if defined(__x86_64__)
#include "attach/x86_64/jump.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "attach/aarch64/jump.h"  // IWYU pragma: export
#endif

namespace heapprofd {

// What a hook reads of the registers that its function is called with.
struct HookContract {
  unsigned arguments = 0;  // the first so many registers of arguments
  // It frees what its first argument points to. The other ones it only passes on, and
  // does nothing when the first one is null.
  bool frees = false;
};

// The begin of a function that stays as it is.
struct KeptBegin {
  size_t length = 0;          // bytes
  std::vector<uint8_t> undo;  // instructions that undo for a hook what it has done
  bool is_repeated = true;    // false: the gate begins behind it
};

// How much of a function stays. `bytes`: its code in the file, or as much of it as is
// known. kUnavailable: a hook cannot stand behind its first instruction, and why.
Result<KeptBegin> KeepBegin(std::span<const uint8_t> bytes, const HookContract& contract);

struct MovedPrologue {
  size_t length = 0;          // bytes behind the kept ones that the jump replaces
  std::vector<uint8_t> code;  // the gate
  size_t copied_at = 0;       // where in it the replaced instructions begin
};

// `bytes`: as for KeepBegin, of a function at `address`; the gate is to run at
// `new_address`. kUnavailable: these instructions cannot be moved, and why.
Result<MovedPrologue> MovePrologue(std::span<const uint8_t> bytes,
                                   uint64_t address,
                                   const KeptBegin& kept,
                                   uint64_t new_address);

// Where the replaced instructions begin: offsets in `original`, which are those bytes, and
// in their copy at `new_address`.
std::vector<std::pair<size_t, size_t>> MovedInstructions(
    std::span<const uint8_t> original, uint64_t address, uint64_t new_address);

// Whether a function returns at once, and nobody's code is in what follows of its first
// `length` bytes.
bool DoesNothing(std::span<const uint8_t> bytes, size_t length);

// Bytes of a breakpoint that begins `bytes`; 0: none does.
size_t BreakpointLength(std::span<const uint8_t> bytes);

// Bytes at the begin of a function that the kernel has changed for a probe: its
// breakpoint, or, where the file has a no-operation for that, a call to its own code.
// `memory` and `file`: what lies at `address` in the process, and in the file.
size_t ProbeLength(std::span<const uint8_t> memory,
                   std::span<const uint8_t> file,
                   uint64_t address,
                   const std::function<bool(uint64_t)>& is_probes_code);

// A function whose first instruction is a jump, or a linker's stub, which leads to the
// function proper.
struct OnwardJump {
  uint64_t target = 0;  // address of code
  uint64_t slot = 0;    // address of a pointer to it, when `target` is 0
};

std::optional<OnwardJump> JumpOnward(std::span<const uint8_t> bytes, uint64_t address);

// The same of a linker's stub for functions of other files only.
std::optional<OnwardJump> StubOnward(std::span<const uint8_t> bytes, uint64_t address);

// Whether the code of a function at `address` branches, or calls, to `target`.
bool BranchesTo(std::span<const uint8_t> bytes, uint64_t address, uint64_t target);

// Whether a linker's stub begins that looks for its function at the first call.
bool IsLazyStub(std::span<const uint8_t> bytes);

// Where a jump (kJumpLength) leads that stands at `address`; nullopt: `bytes` begin with none.
std::optional<uint64_t> JumpTarget(std::span<const uint8_t> bytes, uint64_t address);

// A jump (kJumpLength) from `address` to `target`, filled up with no-operations to `length`
// bytes; empty when it is out of reach. With kOperandLength bytes only where it leads to:
// what precedes them is a jump already.
std::vector<uint8_t> MakeJump(uint64_t address, uint64_t target, size_t length);

// A jump from anywhere to anywhere.
std::vector<uint8_t> MakeFarJump(uint64_t target);

}  // namespace heapprofd
