#include "unwind/cfi_rules.h"

#include <dwarf.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <span>

#include "walk/step.h"

namespace heapprofd {
namespace {

constexpr int kDwarfBp = 6;
constexpr int kDwarfSp = 7;

struct FrameDeleter {
  void operator()(Dwarf_Frame* frame) const { free(frame); }
};

using FramePtr = std::unique_ptr<Dwarf_Frame, FrameDeleter>;
using Ops = std::span<const Dwarf_Op>;

Rule Unwalkable() {
  return Rule{.kind = RuleKind::kUnwalkable};
}

// The address of a PLT slot's stack: rsp + 8, plus 8 more once the slot has pushed its
// number. The compact form that linkers emit: breg7 8; breg16 0; lit15; and; litN; ge;
// lit3; shl; plus.
std::optional<int64_t> EvaluatePlt(Ops ops, uint64_t rel_pc) {
  if (ops.size() != 9 || ops[0].atom != DW_OP_breg7 || ops[1].atom != DW_OP_breg16 ||
      ops[2].atom != DW_OP_lit15 || ops[3].atom != DW_OP_and ||
      ops[4].atom < DW_OP_lit0 || ops[4].atom > DW_OP_lit31 || ops[5].atom != DW_OP_ge ||
      ops[6].atom != DW_OP_lit3 || ops[7].atom != DW_OP_shl || ops[8].atom != DW_OP_plus)
    return std::nullopt;
  const uint64_t pushed_from = ops[4].atom - DW_OP_lit0;
  return static_cast<int64_t>(ops[0].number) + ((rel_pc & 15) >= pushed_from ? 8 : 0);
}

// The part of the rule that says where the CFA is; kUnwalkable when it is not of a known
// form.
Rule CfaRule(Ops ops, uint64_t rel_pc) {
  int64_t offset = 0;
  RuleKind kind = RuleKind::kUnwalkable;
  if (ops.size() == 1 && ops[0].atom == DW_OP_bregx) {
    offset = static_cast<int64_t>(ops[0].number2);
    if (ops[0].number == kDwarfSp)
      kind = RuleKind::kSp;
    else if (ops[0].number == kDwarfBp)
      kind = RuleKind::kBp;
  } else if (ops.size() == 1 &&
             (ops[0].atom == DW_OP_breg6 || ops[0].atom == DW_OP_breg7)) {
    offset = static_cast<int64_t>(ops[0].number);
    kind = ops[0].atom == DW_OP_breg7 ? RuleKind::kSp : RuleKind::kBp;
  } else if (ops.size() == 2 && ops[0].atom == DW_OP_breg6 &&
             ops[1].atom == DW_OP_deref) {
    offset = static_cast<int64_t>(ops[0].number);
    kind = RuleKind::kBpDeref;
  } else if (const std::optional<int64_t> plt = EvaluatePlt(ops, rel_pc)) {
    offset = *plt;
    kind = RuleKind::kSp;
  }
  if (kind == RuleKind::kUnwalkable || offset < kMinCfaOffset || offset > kMaxCfaOffset ||
      offset % 8 != 0)
    return Unwalkable();
  return Rule{.kind = kind, .cfa_offset = static_cast<int32_t>(offset)};
}

enum class SavedKind : uint8_t { kSame, kUndefined, kAtCfa, kAtBp, kAtSp, kOther };

struct Saved {
  SavedKind kind = SavedKind::kOther;
  int64_t offset = 0;  // from the CFA or from rsp, for kAtCfa and kAtSp
};

Saved WhereSaved(Dwarf_Frame* frame, int regno) {
  Dwarf_Op memory[3];
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (dwarf_frame_register(frame, regno, memory, &ops, &count) != 0)
    return {};
  if (count == 0)
    return {.kind = ops == nullptr ? SavedKind::kSame : SavedKind::kUndefined};
  if (ops[0].atom != DW_OP_call_frame_cfa)
    return {};
  if (count == 1)
    return {.kind = SavedKind::kAtCfa, .offset = 0};
  // libdw writes a negative offset as a large unsigned constant.
  if (count == 2 && ops[1].atom == DW_OP_plus_uconst)
    return {.kind = SavedKind::kAtCfa, .offset = static_cast<int64_t>(ops[1].number)};
  // g++ says so in functions that realign their stack: an expression, which begins on a
  // CFA that it does not use.
  if (count == 2 && ops[1].atom == DW_OP_breg6 && ops[1].number == 0)
    return {.kind = SavedKind::kAtBp};
  if (count == 2 && ops[1].atom == DW_OP_breg7)
    return {.kind = SavedKind::kAtSp, .offset = static_cast<int64_t>(ops[1].number)};
  return {};
}

bool IsAtSp(const Saved& saved, uint64_t offset) {
  return saved.kind == SavedKind::kAtSp && saved.offset == static_cast<int64_t>(offset);
}

// The rule for signal frames knows where the kernel saves registers. Others mark frames
// so that are none of the kernel's, e.g. dispatchers of their own exceptions.
bool IsKernelSignalFrame(Dwarf_Frame* frame, int return_address_column) {
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  return dwarf_frame_cfa(frame, &ops, &count) == 0 && count == 2 &&
         ops[0].atom == DW_OP_breg7 && ops[0].number == kUcontextSp &&
         ops[1].atom == DW_OP_deref &&
         IsAtSp(WhereSaved(frame, return_address_column), kUcontextPc) &&
         IsAtSp(WhereSaved(frame, kDwarfBp), kUcontextBp);
}

}  // namespace

Rule RuleForAddress(Module& module, uint64_t rel_pc) {
  module.TrimCache();
  const FramePtr frame(module.FindFrame(rel_pc));
  if (frame == nullptr)
    return Rule{};
  bool is_signal_frame = false;
  const int return_address_column =
      dwarf_frame_info(frame.get(), nullptr, nullptr, &is_signal_frame);
  if (return_address_column < 0)
    return Unwalkable();
  if (is_signal_frame)
    return IsKernelSignalFrame(frame.get(), return_address_column)
               ? Rule{.kind = RuleKind::kSignal}
               : Unwalkable();
  const Saved return_address = WhereSaved(frame.get(), return_address_column);
  if (return_address.kind == SavedKind::kUndefined)
    return Rule{.kind = RuleKind::kEnd};
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (return_address.kind != SavedKind::kAtCfa || return_address.offset != -8 ||
      dwarf_frame_cfa(frame.get(), &ops, &count) != 0)
    return Unwalkable();
  Rule rule = CfaRule(Ops(ops, count), rel_pc);
  if (rule.kind == RuleKind::kUnwalkable)
    return rule;
  const Saved bp = WhereSaved(frame.get(), kDwarfBp);
  if (bp.kind == SavedKind::kAtCfa && bp.offset % 8 == 0 && bp.offset <= -16 &&
      -bp.offset / 8 <= int64_t{kMaxBpSlot})
    rule.bp_slot = static_cast<uint32_t>(-bp.offset / 8);
  else if (bp.kind == SavedKind::kAtBp && rule.kind == RuleKind::kBpDeref)
    rule.bp_slot = kBpSlotAtBp;
  else if (bp.kind != SavedKind::kSame && bp.kind != SavedKind::kUndefined)
    return Unwalkable();
  return rule;
}

bool BeginsFunction(Module& module, uint64_t rel_pc) {
  const FramePtr frame(module.FindFrame(rel_pc));
  Dwarf_Addr start = 0;
  return frame != nullptr &&
         dwarf_frame_info(frame.get(), &start, nullptr, nullptr) >= 0 && start == rel_pc;
}

}  // namespace heapprofd
