// Unwinds stacks that were copied out of the target, and learns the rules that let the
// target walk the same code by itself from then on.
//
// The copy is hostile: registers and bytes may be anything. Every read is checked against
// the copy, every step must move up, and the number of frames is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "unwind/address_space.h"
#include "walk/step.h"

namespace heapprofd {

struct StackCopy {
  Cursor cursor;                      // the innermost frame
  std::span<const std::byte> bytes;   // memory from (cursor.sp & ~7) upward
  std::optional<Cursor> anchor = {};  // outward from a frame with these registers the
                                      // stack is known
};

enum class StopReason : uint8_t {
  kComplete,       // outermost frame reached
  kAnchor,         // the frame reached that the caller knows, see StackCopy::anchor
  kTruncatedCopy,  // the stack goes on above the copied bytes
  kNoUnwindInfo,   // code without usable unwind information
  kBadStack,       // the rules lead out of the stack
  kTooDeep,
  kUnmapped,     // an address that is no code, as far as is known
  kReturnProbe,  // the kernel has put its own code there in place of the caller
};

struct UnwoundStack {
  // Innermost first, cursor.key included; not the anchor's, and none that is certainly no
  // address of code. Empty: cursor.key is none.
  std::vector<uint64_t> keys;
  std::vector<std::pair<uint64_t, Rule>> rules;  // newly derived, to be published
  StopReason stop = StopReason::kComplete;
};

enum class UnwindMode : uint8_t {
  kCached,  // use rules derived before
  kFresh,   // derive every rule from unwind information again: an independent check
};

class StackUnwinder {
 public:
  explicit StackUnwinder(AddressSpace* address_space) : address_space_(address_space) {}

  UnwoundStack Unwind(const StackCopy& copy, size_t max_frames, UnwindMode mode);

  // A rule proved wrong. That code was replaced is noticed without.
  void ForgetRules() { rules_.clear(); }

 private:
  class CopiedStack;

  Rule FindRule(const Cursor& cursor,
                const CopiedStack& stack,
                UnwindMode mode,
                UnwoundStack* result);
  Rule DeriveRule(const Cursor& cursor, const CopiedStack& stack, UnwoundStack* result);
  Rule FramePointerRule(const Cursor& cursor,
                        const CopiedStack& stack,
                        UnwoundStack* result) const;
  bool FramePointerIsPlausible(const Cursor& cursor, const CopiedStack& stack) const;
  void ForgetReplacedCode(UnwoundStack* result);

  AddressSpace* address_space_;
  std::unordered_map<uint64_t, Rule> rules_;  // by key
  uint64_t replacements_seen_ = 0;            // of the address space
};

}  // namespace heapprofd
