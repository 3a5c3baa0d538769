// What comes of a step (walk/step.h), on every architecture.
#pragma once

#include <cstdint>

#include "walk/rule_kind.h"

namespace heapprofd {

enum class StepResult : uint8_t {
  kOk,
  kEnd,        // outermost frame reached
  kNoRule,     // kUnknown and the like: the copy path is needed
  kCut,        // the engine has no way further out either
  kBadMemory,  // the rule leads outside the readable stack, or does not move up
};

// Of a frame whose rule leads to no caller. kNoCode is among them: whoever keeps the
// frames has to see to it.
constexpr StepResult ResultWithoutCaller(RuleKind kind) {
  if (kind == RuleKind::kEnd)
    return StepResult::kEnd;
  return kind == RuleKind::kStop ? StepResult::kCut : StepResult::kNoRule;
}

// Return addresses below this are null pointers with an offset: the end of a stack
// without CFI.
inline constexpr uint64_t kMinCodeAddress = 4096;

}  // namespace heapprofd
