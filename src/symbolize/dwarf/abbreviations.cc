#include "symbolize/dwarf/abbreviations.h"

#include <dwarf.h>

#include <cstring>
#include <utility>

namespace heapprofd {
namespace {

// Compilers number abbreviations from 1 without gaps.
constexpr unsigned kMaxCode = 1 << 20;
constexpr size_t kMaxAttributes = 256;  // of one entry; compilers need some 30
constexpr unsigned kMaxIndirections = 4;

// Size of a form's value where it is the same in the whole unit; -1 where it is not.
int FixedSize(const UnitBytes& unit, unsigned form) {
  switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
      return 0;
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_ref_sup4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
      return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sup8:
    case DW_FORM_ref_sig8:
      return 8;
    case DW_FORM_data16:
      return 16;
    case DW_FORM_addr:
      return unit.address_size;
    case DW_FORM_ref_addr:
      return unit.version == 2 ? unit.address_size : unit.offset_size;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
      return unit.offset_size;
    default:
      return -1;
  }
}

bool SkipBytes(const uint8_t*& at, const uint8_t* end, uint64_t size) {
  if (size > static_cast<uint64_t>(end - at))
    return false;
  at += size;
  return true;
}

// A length of `width` bytes, and as many bytes.
bool SkipBlock(const uint8_t*& at, const uint8_t* end, size_t width) {
  uint32_t size = 0;
  if (static_cast<size_t>(end - at) < width)
    return false;
  memcpy(&size, at, width);
  at += width;
  return SkipBytes(at, end, size);
}

bool SkipString(const uint8_t*& at, const uint8_t* end) {
  const void* zero = memchr(at, 0, static_cast<size_t>(end - at));
  if (zero == nullptr)
    return false;
  at = static_cast<const uint8_t*>(zero) + 1;
  return true;
}

}  // namespace

bool SkipForm(const UnitBytes& unit, unsigned form, const uint8_t*& at) {
  uint64_t number = form;
  for (unsigned i = 0; number == DW_FORM_indirect; ++i) {
    if (i == kMaxIndirections || !ReadUleb(at, unit.end, number))
      return false;
  }
  switch (number) {
    case DW_FORM_block:
    case DW_FORM_exprloc:
      return ReadUleb(at, unit.end, number) && SkipBytes(at, unit.end, number);
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
      return SkipLeb(at, unit.end);
    case DW_FORM_string:
      return SkipString(at, unit.end);
    case DW_FORM_block1:
      return SkipBlock(at, unit.end, 1);
    case DW_FORM_block2:
      return SkipBlock(at, unit.end, 2);
    case DW_FORM_block4:
      return SkipBlock(at, unit.end, 4);
    default: {
      const int size = FixedSize(unit, static_cast<unsigned>(number));
      return size >= 0 && SkipBytes(at, unit.end, static_cast<uint64_t>(size));
    }
  }
}

AbbreviationTable::AbbreviationTable(const UnitBytes& unit) {
  Dwarf_Die root = unit.root;
  size_t length = 0;
  for (Dwarf_Off offset = 0;; offset += length) {
    Dwarf_Abbrev* entry = dwarf_getabbrev(&root, offset, &length);
    if (entry == nullptr || entry == DWARF_END_ABBREV || length == 0)
      return;
    const unsigned code = dwarf_getabbrevcode(entry);
    if (code >= kMaxCode)
      return;
    Abbreviation abbreviation{.tag = dwarf_getabbrevtag(entry),
                              .has_children = dwarf_abbrevhaschildren(entry) > 0,
                              .is_valid = true,
                              .first = static_cast<uint32_t>(attributes_.size()),
                              .count = 0,
                              .first_step = static_cast<uint32_t>(steps_.size())};
    SkipStep step;
    // Until there is none: dwarf_getattrcnt of libdw 0.188 stumbles over implicit
    // constants.
    for (size_t i = 0; i < kMaxAttributes; ++i) {
      AttributeForm attribute;
      Dwarf_Sword implicit = 0;
      if (dwarf_getabbrevattr_data(entry, i, &attribute.name, &attribute.form, &implicit,
                                   nullptr) != 0)
        break;
      attribute.implicit = implicit;
      attribute.fixed_size = FixedSize(unit, attribute.form);
      attributes_.push_back(attribute);
      ++abbreviation.count;
      if (attribute.fixed_size >= 0) {
        step.bytes += static_cast<uint32_t>(attribute.fixed_size);
      } else {
        step.form = attribute.form;
        steps_.push_back(std::exchange(step, {}));
      }
    }
    steps_.push_back(step);
    if (code >= by_code_.size())
      by_code_.resize(code + 1);
    if (!by_code_[code].is_valid)
      by_code_[code] = abbreviation;
  }
}

}  // namespace heapprofd
