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
  int fixed_size = -1;   // bytes; -1: depends on the value
  int64_t implicit = 0;  // the value, for DW_FORM_implicit_const
};

// To get past an entry: some bytes, then one value of a form without a fixed size.
struct SkipStep {
  uint32_t bytes = 0;
  unsigned form = 0;  // 0: none, the entry ends here
};

struct Abbreviation {
  unsigned tag = 0;
  bool has_children = false;
  bool is_valid = false;
  uint32_t first = 0;  // in the table's attributes
  uint32_t count = 0;
  uint32_t first_step = 0;  // in the table's steps, of which the last one has no form
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

  // Moves past the attributes of an entry of `unit`. False: see SkipForm.
  bool Skip(const UnitBytes& unit,
            const Abbreviation& abbreviation,
            const uint8_t*& at) const;

 private:
  std::vector<Abbreviation> by_code_;
  std::vector<AttributeForm> attributes_;
  std::vector<SkipStep> steps_;
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

// The same, for one whose size may be known.
inline bool SkipValue(const UnitBytes& unit,
                      const AttributeForm& attribute,
                      const uint8_t*& at) {
  if (attribute.fixed_size < 0)
    return SkipForm(unit, attribute.form, at);
  if (unit.end - at < attribute.fixed_size)
    return false;
  at += attribute.fixed_size;
  return true;
}

inline bool AbbreviationTable::Skip(const UnitBytes& unit,
                                    const Abbreviation& abbreviation,
                                    const uint8_t*& at) const {
  for (const SkipStep* step = &steps_[abbreviation.first_step];; ++step) {
    if (static_cast<uint64_t>(unit.end - at) < step->bytes)
      return false;
    at += step->bytes;
    if (step->form == 0)
      return true;
    if (!SkipForm(unit, step->form, at))
      return false;
  }
}

}  // namespace heapprofd
