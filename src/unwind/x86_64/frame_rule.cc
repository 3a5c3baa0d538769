#include "unwind/frame_rule.h"

#include <dwarf.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "unwind/saved_place.h"
#include "walk/step.h"

namespace heapprofd {
namespace {

using namespace std::string_view_literals;

constexpr int kDwarfBp = 6;
constexpr int kDwarfSp = 7;

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

bool IsAtSp(const SavedPlace& saved, uint64_t offset) {
  return saved.kind == SavedKind::kAtRegister && saved.base == kDwarfSp &&
         saved.offset == static_cast<int64_t>(offset);
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

// g++ says so in functions that realign their stack.
bool IsAtBp(const SavedPlace& saved) {
  return saved.kind == SavedKind::kAtRegister && saved.base == kDwarfBp &&
         saved.offset == 0;
}

}  // namespace

Rule FrameRule(Dwarf_Frame* frame, const FrameInfo& info, uint64_t rel_pc) {
  if (info.is_signal_frame)
    return IsKernelSignalFrame(frame, info.return_address_column)
               ? Rule{.kind = RuleKind::kSignal}
               : Unwalkable();
  const SavedPlace return_address = WhereSaved(frame, info.return_address_column);
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (return_address.kind != SavedKind::kAtCfa || return_address.offset != -8 ||
      dwarf_frame_cfa(frame, &ops, &count) != 0)
    return Unwalkable();
  Rule rule = CfaRule(Ops(ops, count), rel_pc);
  if (rule.kind == RuleKind::kUnwalkable)
    return rule;
  const SavedPlace bp = WhereSaved(frame, kDwarfBp);
  if (bp.kind == SavedKind::kAtCfa && bp.offset % 8 == 0 && bp.offset <= -16 &&
      bp.offset >= -8 * int64_t{kMaxBpSlot})
    rule.bp_slot = static_cast<uint32_t>(-bp.offset / 8);
  else if (IsAtBp(bp) && rule.kind == RuleKind::kBpDeref)
    rule.bp_slot = kBpSlotAtBp;
  else if (bp.kind != SavedKind::kSame && bp.kind != SavedKind::kUndefined)
    return Unwalkable();
  return rule;
}

// It is the C library's: described (glibc), or known by RuleOfCode (musl).
bool IsKernelSignalReturn(const Module& /*module*/, uint64_t /*rel_pc*/) {
  return false;
}

Rule RuleOfCode(Module& module, uint64_t rel_pc) {
  constexpr std::string_view kSignalReturn =
      "\x48\xc7\xc0\x0f\x00\x00\x00"  // mov $15, %rax  (rt_sigreturn)
      "\x0f\x05"sv;                   // syscall
  // mov %eax, %edi; mov %rax, %rdi; movslq %eax, %rdi; each before a call
  constexpr std::string_view kPasses[] = {"\x89\xc7\xe8", "\x48\x89\xc7\xe8",
                                          "\x48\x63\xf8\xe8"};
  std::array<char, 16> bytes{};
  const uint64_t next = rel_pc + 1;  // where the function that was called returns to
  if (!module.ReadCode(next, bytes))
    return Rule{};
  const std::string_view code(bytes.data(), bytes.size());
  if (code.starts_with(kSignalReturn))
    return Rule{.kind = RuleKind::kSignal};
  for (const std::string_view pass : kPasses) {
    int32_t distance = 0;  // from the end of the call
    if (!code.starts_with(pass))
      continue;
    memcpy(&distance, code.data() + pass.size(), sizeof(distance));
    if (module.BeginsExit(next + pass.size() + sizeof(distance) +
                          static_cast<uint64_t>(int64_t{distance})))
      return Rule{.kind = RuleKind::kEnd};
  }
  return Rule{};
}

}  // namespace heapprofd
