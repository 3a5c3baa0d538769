#include "unwind/cfi_rules.h"

#include <cstdlib>
#include <memory>

#include "unwind/frame_rule.h"
#include "unwind/saved_place.h"

namespace heapprofd {
namespace {

struct FrameDeleter {
  void operator()(Dwarf_Frame* frame) const { free(frame); }
};

using FramePtr = std::unique_ptr<Dwarf_Frame, FrameDeleter>;

}  // namespace

Rule RuleForAddress(Module& module, uint64_t rel_pc) {
  if (IsKernelSignalReturn(module, rel_pc))
    return Rule{.kind = RuleKind::kSignal};
  module.TrimCache();
  const FramePtr frame(module.FindFrame(rel_pc));
  if (frame == nullptr)
    return RuleOfCode(module, rel_pc);
  FrameInfo info;
  info.return_address_column =
      dwarf_frame_info(frame.get(), nullptr, nullptr, &info.is_signal_frame);
  if (info.return_address_column < 0)
    return Rule{.kind = RuleKind::kUnwalkable};
  if (!info.is_signal_frame &&
      WhereSaved(frame.get(), info.return_address_column).kind == SavedKind::kUndefined)
    return Rule{.kind = RuleKind::kEnd};
  return FrameRule(frame.get(), info, rel_pc);
}

bool BeginsFunction(Module& module, uint64_t rel_pc) {
  const FramePtr frame(module.FindFrame(rel_pc));
  Dwarf_Addr start = 0;
  return frame != nullptr &&
         dwarf_frame_info(frame.get(), &start, nullptr, nullptr) >= 0 && start == rel_pc;
}

}  // namespace heapprofd
