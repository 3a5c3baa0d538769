#include "symbolize/unit_index.h"

#include <dwarf.h>

#include "symbolize/dwarf_check.h"

namespace heapprofd {
namespace {

// Over all units of a module; a browser built with a section per function has some two
// million.
constexpr uint64_t kMaxUnitRanges = 8'000'000;
constexpr uint64_t kMaxSplitEntries = 16'000'000;

bool MayHoldCode(Dwarf_Die* die) {
  return dwarf_tag(die) == DW_TAG_compile_unit || dwarf_tag(die) == DW_TAG_skeleton_unit;
}

}  // namespace

FunctionRoot FindFunctionRoot(const Unit& unit) {
  Dwarf_CU* cu = unit.die.cu;
  uint8_t type = 0;
  Dwarf_Die split = {};
  if (dwarf_cu_info(cu, nullptr, &type, nullptr, &split, nullptr, nullptr, nullptr) ==
          0 &&
      type == DW_UT_skeleton && split.cu != nullptr &&
      IsSafeToRead(dwarf_cu_getdwarf(split.cu)))
    return {.die = split, .max_entries = kMaxSplitEntries};
  // An entry takes a byte or more, is walked over at most twice, and has few ranges of
  // its own.
  return {.die = unit.die, .max_entries = unit.size_bytes * 4 + 1024};
}

UnitIndex::UnitIndex(Dwarf* dwarf) {
  uint64_t ranges_left = kMaxUnitRanges;
  Dwarf_Off next = 0;
  size_t header_size = 0;
  for (Dwarf_Off offset = 0;
       dwarf_next_unit(dwarf, offset, &next, &header_size, nullptr, nullptr, nullptr,
                       nullptr, nullptr, nullptr) == 0 &&
       next > offset && ranges_left > 0;
       offset = next) {
    Unit unit = {.die = {}, .size_bytes = next - offset};
    if (dwarf_offdie(dwarf, offset + header_size, &unit.die) == nullptr ||
        !MayHoldCode(&unit.die))
      continue;
    const auto index = static_cast<uint32_t>(units_.size());
    const uint64_t added = ForEachRange(
        &unit.die, ranges_left,
        [&](uint64_t start, uint64_t end) { by_address_.Add(start, end, index); });
    if (added == 0)
      continue;
    ranges_left -= added;
    units_.push_back(unit);
  }
  by_address_.Build();
}

LineTable::LineTable(Dwarf_Die unit) {
  if (dwarf_getsrclines(&unit, &lines_, &line_count_) != 0)
    line_count_ = 0;
  if (dwarf_getsrcfiles(&unit, &files_, &file_count_) != 0)
    file_count_ = 0;
}

SourcePosition LineTable::Find(uint64_t address) const {
  size_t low = 0;  // every row below starts at or before the address
  size_t high = line_count_;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    Dwarf_Addr start = 0;
    dwarf_lineaddr(dwarf_onesrcline(lines_, middle), &start);
    if (start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0)
    return {};
  Dwarf_Line* row = dwarf_onesrcline(lines_, low - 1);
  bool is_end = false;  // of a sequence: the address lies in a gap
  int line = 0;
  if (dwarf_lineendsequence(row, &is_end) != 0 || is_end || dwarf_lineno(row, &line) != 0)
    return {};
  return {.file = dwarf_linesrc(row, nullptr, nullptr),
          .line = line < 0 ? 0 : static_cast<uint32_t>(line)};
}

const char* LineTable::FileName(uint64_t number) const {
  return number < file_count_ ? dwarf_filesrc(files_, number, nullptr, nullptr) : nullptr;
}

}  // namespace heapprofd
