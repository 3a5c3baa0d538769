// The abbreviations of one unit in a form that lets its entries be skipped quickly.
//
// libdw reads the table; where the bytes of an entry end is decided here, because asking
// libdw for each of some million entries takes most of the time of symbolization.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <span>
#include <vector>

namespace heapprofd {

// Entries of a unit as they lie in .debug_info.
struct UnitBytes {
  Dwarf_Die root = {};             // the unit's own entry
  const uint8_t* begin = nullptr;  // that entry
  const uint8_t* end = nullptr;
  uint16_t version = 0;
  uint8_t address_size = 0;
  uint8_t offset_size = 0;
};

struct AttributeForm {
  unsigned name = 0;
  unsigned form = 0;
  int64_t implicit = 0;  // the value, for DW_FORM_implicit_const
};

struct Abbreviation {
  unsigned tag = 0;
  bool has_children = false;
  bool is_valid = false;
  int32_t fixed_size = -1;  // bytes of all attributes; -1: depends on the entry
  uint32_t first = 0;       // in the table's attributes
  uint32_t count = 0;
};

class AbbreviationTable {
 public:
  explicit AbbreviationTable(const UnitBytes& unit);

  // Null for a code that is not defined.
  const Abbreviation* Find(uint64_t code) const {
    return code < by_code_.size() && by_code_[code].is_valid ? &by_code_[code] : nullptr;
  }

  std::span<const AttributeForm> Attributes(const Abbreviation& abbreviation) const {
    return {attributes_.data() + abbreviation.first, abbreviation.count};
  }

 private:
  std::vector<Abbreviation> by_code_;
  std::vector<AttributeForm> attributes_;
};

// Moves past a LEB128 number.
inline bool SkipLeb(const uint8_t*& at, const uint8_t* end) {
  while (at < end) {
    if (*at++ < 0x80)
      return true;
  }
  return false;
}

inline bool ReadUleb(const uint8_t*& at, const uint8_t* end, uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
    const uint8_t byte = *at++;
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80)
      return true;
  }
  return false;
}

// Moves past the value of an attribute. False: the form is unknown, or the unit ends.
bool SkipForm(const UnitBytes& unit, unsigned form, const uint8_t*& at);

}  // namespace heapprofd
