#include "unwind/frame_rule.h"

#include <dwarf.h>

#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "unwind/saved_place.h"
#include "walk/step.h"

namespace heapprofd {
namespace {

using namespace std::string_view_literals;

constexpr int kDwarfBp = 29;
constexpr int kDwarfSp = 31;

// CFA = register + offset; nullopt: in another form.
std::optional<Rule> CfaRule(Dwarf_Frame* frame) {
  Dwarf_Op* ops = nullptr;
  size_t count = 0;
  if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count != 1)
    return std::nullopt;
  const bool is_numbered = ops[0].atom == DW_OP_bregx;
  if (!is_numbered && (ops[0].atom < DW_OP_breg0 || ops[0].atom > DW_OP_breg31))
    return std::nullopt;
  const uint64_t base = is_numbered ? ops[0].number : ops[0].atom - DW_OP_breg0;
  const auto offset = static_cast<int64_t>(is_numbered ? ops[0].number2 : ops[0].number);
  if ((base != kDwarfSp && base != kDwarfBp) || offset < 0 || offset > kMaxCfaOffset)
    return std::nullopt;
  return Rule{.kind = base == kDwarfSp ? RuleKind::kSp : RuleKind::kBp,
              .cfa_offset = static_cast<int32_t>(offset)};
}

// In words below the CFA; 0: not saved; nullopt: somewhere else. Nothing is saved at the
// CFA or above it: libdw before 0.189 takes the switch of RA_SIGN_STATE
// (DW_CFA_AARCH64_negate_ra_state, 0x2d) for SPARC's window_save, which puts x16 to x31
// there.
std::optional<uint32_t> SlotOf(const SavedPlace& saved) {
  if (saved.kind == SavedKind::kSame || saved.kind == SavedKind::kUndefined)
    return 0;
  if (saved.kind != SavedKind::kAtCfa || saved.offset % 8 != 0 ||
      saved.offset < -kMaxCfaOffset)
    return std::nullopt;
  return saved.offset >= 0 ? 0 : static_cast<uint32_t>(-saved.offset / 8);
}

}  // namespace

Rule FrameRule(Dwarf_Frame* frame, const FrameInfo& info, uint64_t /*rel_pc*/) {
  const std::optional<Rule> cfa = CfaRule(frame);
  const std::optional<uint32_t> return_slot =
      SlotOf(WhereSaved(frame, info.return_address_column));
  const std::optional<uint32_t> bp_slot = SlotOf(WhereSaved(frame, kDwarfBp));
  // What marks itself as a signal frame and is not known as the kernel's return.
  if (info.is_signal_frame || !cfa || !return_slot || !bp_slot)
    return Rule{.kind = RuleKind::kUnwalkable};
  Rule rule = *cfa;
  rule.return_slot = *return_slot;
  rule.bp_slot = *bp_slot;
  return IsEncodable(rule) ? rule : Rule{.kind = RuleKind::kUnwalkable};
}

// Handlers return to its first instruction, and `rel_pc` lies before that. The vdso of
// some kernels describes it, by a mark and a frame record that says less than the
// registers that the kernel has saved.
bool IsKernelSignalReturn(const Module& module, uint64_t rel_pc) {
  constexpr std::string_view kReturn =
      "\x68\x11\x80\xd2"     // mov x8, #139  (rt_sigreturn)
      "\x01\x00\x00\xd4"sv;  // svc #0
  std::array<char, kReturn.size()> code{};
  return module.ReadCode(rel_pc + 1, code) &&
         std::string_view(code.data(), code.size()) == kReturn;
}

Rule RuleOfCode(Module& module, uint64_t rel_pc) {
  constexpr uint32_t kWiden = 0x93407c00;  // sxtw x0, w0
  constexpr uint32_t kCall = 0x94000000;   // bl, with the distance in its lower 26 bits
  constexpr uint32_t kCallMask = 0xfc000000;
  std::array<char, 8> bytes{};
  uint64_t at = rel_pc + 1;  // where the function that was called returns to
  if (!module.ReadCode(at, bytes))
    return Rule{};
  std::array<uint32_t, 2> code{};
  memcpy(code.data(), bytes.data(), bytes.size());
  const uint32_t call = code[0] == kWiden ? code[1] : code[0];
  at += code[0] == kWiden ? 4U : 0U;
  // In words; the shifts extend its sign.
  const int64_t distance = static_cast<int32_t>(call << 6) >> 6;
  return (call & kCallMask) == kCall &&
                 module.BeginsExit(at + 4 * static_cast<uint64_t>(distance))
             ? Rule{.kind = RuleKind::kEnd}
             : Rule{};
}

}  // namespace heapprofd
