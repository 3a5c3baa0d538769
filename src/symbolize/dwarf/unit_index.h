// The compile units of a module's DWARF, by address.
//
// Built from the ranges that the units themselves state: .debug_aranges is optional and
// often missing (clang writes none), and asking libdw per address would scan the units
// anew each time.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "symbolize/dwarf/abbreviations.h"
#include "symbolize/range_map.h"

namespace heapprofd {

struct Unit {
  UnitBytes bytes;  // its root has lines and files
};

// Where the functions of a unit are described: the unit itself, or its other half in a
// .dwo file.
UnitBytes FindFunctions(const Unit& unit);

class UnitIndex {
 public:
  explicit UnitIndex(Dwarf* dwarf);

  // Index into the list of units.
  std::optional<uint32_t> Find(uint64_t address) const {
    return by_address_.Find(address);
  }

  const Unit& unit(uint32_t index) const { return units_[index]; }

 private:
  std::vector<Unit> units_;
  RangeMap<uint32_t> by_address_;
};

// Calls visit(start, end) for each address range of the entry, at most `limit` times.
// Returns the number of calls. Code that the linker has dropped keeps its entry, at
// address 0.
template <typename Visit>
uint64_t ForEachRange(Dwarf_Die* die, uint64_t limit, Visit visit) {
  uint64_t count = 0;
  Dwarf_Addr base = 0;
  Dwarf_Addr start = 0;
  Dwarf_Addr end = 0;
  ptrdiff_t offset = 0;
  while (count < limit && (offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
    ++count;
    if (start != 0)
      visit(start, end);
  }
  return count;
}

}  // namespace heapprofd
