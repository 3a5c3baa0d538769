#include "unwind/saved_place.h"

#include <dwarf.h>

namespace heapprofd {

SavedPlace WhereSaved(Dwarf_Frame* frame, int regno) {
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
  // An expression begins on the CFA, whether it uses it or not.
  if (count == 2 && ops[1].atom >= DW_OP_breg0 && ops[1].atom <= DW_OP_breg31)
    return {.kind = SavedKind::kAtRegister,
            .offset = static_cast<int64_t>(ops[1].number),
            .base = ops[1].atom - DW_OP_breg0};
  return {};
}

}  // namespace heapprofd
