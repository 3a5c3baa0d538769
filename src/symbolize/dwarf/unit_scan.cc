#include "symbolize/dwarf/unit_scan.h"

#include <dwarf.h>

#include <algorithm>

#include "symbolize/dwarf/unit_index.h"

namespace heapprofd {
namespace {

// Calls inlined into each other; compilers stay well below 100.
constexpr unsigned kMaxDepth = 256;

bool ReadAddress(Dwarf_CU* unit, unsigned form, const uint8_t* at, uint64_t& value) {
  Dwarf_Attribute attribute = {
      .code = 0, .form = form, .valp = const_cast<uint8_t*>(at), .cu = unit};
  Dwarf_Addr address = 0;
  if (dwarf_formaddr(&attribute, &address) != 0)
    return false;
  value = address;
  return true;
}

bool IsAddress(unsigned form) {
  switch (form) {
    case DW_FORM_addr:
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
      return true;
    default:
      return false;
  }
}

}  // namespace

uint64_t UnitScan::ReadNumber(const AttributeValue& value) const {
  if (value.attribute == nullptr)
    return 0;
  if (value.attribute->form == DW_FORM_implicit_const)
    return static_cast<uint64_t>(value.attribute->implicit);
  Dwarf_Attribute attribute = {.code = 0,
                               .form = value.attribute->form,
                               .valp = const_cast<uint8_t*>(value.at),
                               .cu = unit_.root.cu};
  Dwarf_Word number = 0;
  return dwarf_formudata(&attribute, &number) == 0 ? number : 0;
}

UnitScan::UnitScan(const UnitBytes& unit, std::span<const uint64_t> addresses)
    : unit_(unit),
      addresses_(addresses),
      abbreviations_(unit),
      // An entry takes a byte or more and has few ranges; an address lies in the ranges
      // of at most kMaxDepth entries.
      budget_(static_cast<uint64_t>(unit.end - unit.begin) * 4 +
              addresses.size() * kMaxDepth + 1024),
      innermost_(addresses.size(), kNone) {
  Scan();
}

void UnitScan::Scan() {
  const uint8_t* at = unit_.begin;
  std::vector<uint32_t> open;  // node in which the children of each open entry are
  while (at < unit_.end && budget_ > 0) {
    const uint8_t* entry = at;
    uint64_t code = 0;
    if (!ReadUleb(at, unit_.end, code))
      return;
    if (code == 0) {
      if (open.size() <= 1)
        return;
      open.pop_back();
      continue;
    }
    const Abbreviation* abbreviation = abbreviations_.Find(code);
    if (abbreviation == nullptr)
      return;
    uint32_t node = open.empty() ? kNone : open.back();
    const bool is_inlined = abbreviation->tag == DW_TAG_inlined_subroutine;
    // Calls inside a function that holds none of the addresses hold none either.
    if ((is_inlined && node != kNone) || abbreviation->tag == DW_TAG_subprogram) {
      Attributes attributes;
      if (!ReadAttributes(*abbreviation, at, attributes))
        return;
      node = AddNode(entry, is_inlined, node, attributes);
    } else if (!abbreviations_.Skip(unit_, *abbreviation, at)) {
      return;
    }
    if (abbreviation->has_children)
      open.push_back(node);
    else if (open.empty())
      return;  // a unit without entries
  }
}

bool UnitScan::ReadAttributes(const Abbreviation& abbreviation,
                              const uint8_t*& at,
                              Attributes& attributes) const {
  Dwarf_CU* unit = unit_.root.cu;
  for (const AttributeForm& attribute : abbreviations_.Attributes(abbreviation)) {
    const uint8_t* value = at;
    if (!SkipValue(unit_, attribute, at))
      return false;
    switch (attribute.name) {
      case DW_AT_low_pc:
        attributes.has_low = ReadAddress(unit, attribute.form, value, attributes.low);
        break;
      case DW_AT_high_pc:
        attributes.has_high = true;
        attributes.high_is_size = !IsAddress(attribute.form);
        if (attributes.high_is_size)
          attributes.high = ReadNumber({&attribute, value});
        else
          ReadAddress(unit, attribute.form, value, attributes.high);
        break;
      case DW_AT_ranges:
        attributes.has_ranges = true;
        break;
      case DW_AT_call_file:
        attributes.call_file = {&attribute, value};
        break;
      case DW_AT_call_line:
        attributes.call_line = {&attribute, value};
        break;
      default:
        break;
    }
  }
  return true;
}

// The new node, or `parent` when no address lies in the entry.
uint32_t UnitScan::AddNode(const uint8_t* entry,
                           bool is_inlined,
                           uint32_t parent,
                           const Attributes& attributes) {
  const auto index = static_cast<uint32_t>(nodes_.size());
  const unsigned depth = is_inlined ? nodes_[parent].depth + 1 : 0;
  const uint32_t outside = is_inlined ? parent : kNone;
  if (depth > kMaxDepth || (!attributes.has_ranges && !attributes.has_low))
    return outside;
  Dwarf_Die die = {.addr = const_cast<uint8_t*>(entry),
                   .cu = unit_.root.cu,
                   .abbrev = nullptr,
                   .padding__ = 0};
  bool is_used = false;
  if (attributes.has_ranges) {
    const uint64_t ranges = ForEachRange(
        &die, budget_,
        [&](uint64_t start, uint64_t end) { Assign(start, end, index, is_used); });
    budget_ -= std::min(budget_, ranges);
  } else if (attributes.has_high && attributes.low != 0) {
    Assign(attributes.low,
           attributes.high_is_size ? attributes.low + attributes.high : attributes.high,
           index, is_used);
  }
  if (!is_used)
    return outside;
  nodes_.push_back(
      {.die = die,
       .parent = is_inlined ? parent : kNone,
       .depth = depth,
       .call_file = ReadNumber(attributes.call_file),
       .call_line = static_cast<uint32_t>(ReadNumber(attributes.call_line))});
  return index;
}

void UnitScan::Assign(uint64_t start, uint64_t end, uint32_t node, bool& is_used) {
  const auto first = std::ranges::lower_bound(addresses_, start);
  for (auto it = first; it != addresses_.end() && *it < end && budget_ > 0; ++it) {
    --budget_;
    is_used = true;
    innermost_[static_cast<size_t>(it - addresses_.begin())] = node;
  }
}

}  // namespace heapprofd
