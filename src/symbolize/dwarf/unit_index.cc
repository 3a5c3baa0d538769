#include "symbolize/dwarf/unit_index.h"

#include <dwarf.h>

#include "symbolize/dwarf/dwarf_check.h"

namespace heapprofd {
namespace {

// Over all units of a module; a browser built with a section per function has some two
// million.
constexpr uint64_t kMaxUnitRanges = 8'000'000;

bool MayHoldCode(Dwarf_Die* die) {
  return dwarf_tag(die) == DW_TAG_compile_unit || dwarf_tag(die) == DW_TAG_skeleton_unit;
}

// Calls visit(unit) for each unit of .debug_info while that returns true.
template <typename Visit>
void ForEachUnit(Dwarf* dwarf, Visit visit) {
  Dwarf_Off next = 0;
  size_t header_size = 0;
  Dwarf_Half version = 0;
  uint8_t address_size = 0;
  uint8_t offset_size = 0;
  for (Dwarf_Off offset = 0;
       dwarf_next_unit(dwarf, offset, &next, &header_size, &version, nullptr,
                       &address_size, &offset_size, nullptr, nullptr) == 0 &&
       next > offset;
       offset = next) {
    UnitBytes unit;
    if (next - offset <= header_size ||
        dwarf_offdie(dwarf, offset + header_size, &unit.root) == nullptr)
      continue;
    unit.begin = static_cast<const uint8_t*>(unit.root.addr);
    unit.end = unit.begin + (next - offset - header_size);
    unit.version = version;
    unit.address_size = address_size;
    unit.offset_size = offset_size;
    if (!visit(unit))
      return;
  }
}

}  // namespace

UnitBytes FindFunctions(const Unit& unit) {
  uint8_t type = 0;
  Dwarf_Die split = {};
  UnitBytes found = unit.bytes;
  if (dwarf_cu_info(unit.bytes.root.cu, nullptr, &type, nullptr, &split, nullptr, nullptr,
                    nullptr) != 0 ||
      type != DW_UT_skeleton || split.cu == nullptr ||
      !IsSafeToRead(dwarf_cu_getdwarf(split.cu)))
    return found;
  ForEachUnit(dwarf_cu_getdwarf(split.cu), [&](const UnitBytes& other) {
    if (other.root.addr != split.addr)
      return true;
    found = other;
    return false;
  });
  return found;
}

UnitIndex::UnitIndex(Dwarf* dwarf) {
  uint64_t ranges_left = kMaxUnitRanges;
  ForEachUnit(dwarf, [&](UnitBytes& unit) {
    if (!MayHoldCode(&unit.root))
      return true;
    const auto index = static_cast<uint32_t>(units_.size());
    const uint64_t added = ForEachRange(
        &unit.root, ranges_left,
        [&](uint64_t start, uint64_t end) { by_address_.Add(start, end, index); });
    ranges_left -= added;
    if (added > 0)
      units_.push_back({unit});
    return ranges_left > 0;
  });
  by_address_.Build();
}

}  // namespace heapprofd
