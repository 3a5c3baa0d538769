#include "unwind/stack_unwinder.h"

#include <cstring>

#include "unwind/cfi_rules.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxCachedRules = 1'000'000;

}  // namespace

class StackUnwinder::CopiedStack {
  static constexpr uint64_t kLargestFrame = uint64_t{8} << 20;

 public:
  explicit CopiedStack(const StackCopy& copy)
      : base_(copy.cursor.sp & ~uint64_t{7}), bytes_(copy.bytes) {}

  bool Read(uint64_t address, uint64_t* value) const {
    if (address < base_ || address - base_ > bytes_.size() ||
        bytes_.size() - (address - base_) < 8)
      return false;
    memcpy(value, bytes_.data() + (address - base_), sizeof(*value));
    return true;
  }

  // A frame here would lie just above what was copied, rather than in nonsense.
  bool EndsNear(uint64_t sp) const {
    return sp >= base_ && sp - base_ < bytes_.size() + kLargestFrame;
  }

  // The same of a frame's end, and it is certainly not within the copy.
  bool EndsBefore(uint64_t end) const {
    return EndsNear(end) && end - base_ > bytes_.size();
  }

 private:
  uint64_t base_;
  std::span<const std::byte> bytes_;
};

UnwoundStack StackUnwinder::Unwind(const StackCopy& copy,
                                   size_t max_frames,
                                   UnwindMode mode) {
  const CopiedStack stack(copy);
  Cursor cursor = copy.cursor;
  UnwoundStack result;
  ForgetReplacedCode(&result);
  while (true) {
    if (copy.anchor && cursor.sp == copy.anchor->sp && cursor.key == copy.anchor->key &&
        (cursor.bp == copy.anchor->bp || copy.anchor->bp == 0)) {
      result.stop = StopReason::kAnchor;
      return result;
    }
    if (result.keys.size() == max_frames) {
      result.stop = StopReason::kTooDeep;
      return result;
    }
    result.keys.push_back(cursor.key);
    const Rule rule = FindRule(cursor, stack, mode, &result);
    if (rule.kind == RuleKind::kNoCode) {
      result.keys.pop_back();
      result.stop = StopReason::kUnmapped;
    }
    if (result.stop != StopReason::kComplete)
      return result;
    switch (Step(rule, cursor, stack)) {
      case StepResult::kOk:
        break;
      case StepResult::kEnd:
        result.stop = StopReason::kComplete;
        return result;
      case StepResult::kNoRule:
      case StepResult::kCut:
        result.stop = StopReason::kNoUnwindInfo;
        return result;
      case StepResult::kBadMemory:
        result.stop = stack.EndsNear(cursor.sp) ? StopReason::kTruncatedCopy
                                                : StopReason::kBadStack;
        return result;
    }
  }
}

Rule StackUnwinder::FindRule(const Cursor& cursor,
                             const CopiedStack& stack,
                             UnwindMode mode,
                             UnwoundStack* result) {
  if (mode == UnwindMode::kFresh)
    return DeriveRule(cursor, stack, result);
  const auto known = rules_.find(cursor.key);
  if (known != rules_.end()) {
    // Published before, but the client asked: its table has lost the entry.
    result->rules.emplace_back(cursor.key, known->second);
    return known->second;
  }
  const Rule rule = DeriveRule(cursor, stack, result);
  ForgetReplacedCode(result);  // to derive the rule the maps may have been read anew
  if (result->stop != StopReason::kComplete || rule.kind == RuleKind::kUnknown ||
      !IsEncodable(rule))
    return rule;
  if (rules_.size() >= kMaxCachedRules)
    rules_.clear();
  rules_.emplace(cursor.key, rule);
  result->rules.emplace_back(cursor.key, rule);
  return rule;
}

Rule StackUnwinder::DeriveRule(const Cursor& cursor,
                               const CopiedStack& stack,
                               UnwoundStack* result) {
  const std::optional<CodeLocation> location =
      address_space_->FindOrRefresh(cursor.key - 1);
  if (!location && address_space_->IsReturnProbe(cursor.key)) {
    result->stop = StopReason::kReturnProbe;
    return Rule{};
  }
  if (!location) {
    const NotFound why = address_space_->WhyNotFound(cursor.key - 1);
    if (why != NotFound::kCertainlyNoCode)
      result->stop = StopReason::kUnmapped;  // nothing is learnt
    return why == NotFound::kMayBeCode ? Rule{} : Rule{.kind = RuleKind::kNoCode};
  }
  if (location->module != nullptr) {
    const Rule rule = RuleForAddress(*location->module, location->rel_pc);
    if (rule.kind == RuleKind::kUnwalkable)
      return Rule{.kind = RuleKind::kStop};
    if (rule.kind != RuleKind::kUnknown)
      return rule;
    if (location->module->IsEntryCode(location->rel_pc) ||
        BeginsFunction(*location->module, location->rel_pc + 1))
      return Rule{.kind = RuleKind::kEnd};
  }
  return FramePointerRule(cursor, stack, result);
}

// Code without unwind information.
Rule StackUnwinder::FramePointerRule(const Cursor& cursor,
                                     const CopiedStack& stack,
                                     UnwoundStack* result) const {
  if (FramePointerIsPlausible(cursor, stack))
    return kFramePointerRule;
  if (cursor.bp % 8 == 0 && stack.EndsBefore(cursor.bp + 16)) {
    result->stop = StopReason::kTruncatedCopy;  // a longer copy may show more
    return Rule{};
  }
  return Rule{.kind = RuleKind::kStop};
}

void StackUnwinder::ForgetReplacedCode(UnwoundStack* result) {
  if (replacements_seen_ == address_space_->replacements())
    return;
  replacements_seen_ = address_space_->replacements();
  ForgetRules();
  result->rules.clear();  // of frames further in: they may be of the code before
}

bool StackUnwinder::FramePointerIsPlausible(const Cursor& cursor,
                                            const CopiedStack& stack) const {
  uint64_t caller_bp = 0;
  uint64_t return_address = 0;
  return cursor.bp >= cursor.sp && cursor.bp % 8 == 0 &&
         stack.Read(cursor.bp, &caller_bp) &&
         stack.Read(cursor.bp + 8, &return_address) &&
         address_space_->FindOrRefresh(WithoutSignature(return_address) - 1).has_value();
}

}  // namespace heapprofd
