// Where a frame's unwind information says that its caller's registers are. libdw answers
// with a little program in DWARF's expressions; of these there are few in compiled code.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>

namespace heapprofd {

enum class SavedKind : uint8_t {
  kSame,
  kUndefined,
  kAtCfa,       // at `offset` from the CFA
  kAtRegister,  // at `offset` from register `base`
  kOther,
};

struct SavedPlace {
  SavedKind kind = SavedKind::kOther;
  int64_t offset = 0;  // bytes
  int base = 0;        // DWARF's number of a register
};

SavedPlace WhereSaved(Dwarf_Frame* frame, int regno);

}  // namespace heapprofd
