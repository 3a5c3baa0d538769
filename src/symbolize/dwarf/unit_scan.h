// Which functions, and which calls inlined into them, hold the addresses asked of one
// unit: one pass over the unit's entries for all of them.
//
// Entries are visited in the order of the file, outer before inner, and the last one
// whose ranges hold an address has it. Units are foreign: a budget stops those that make
// the pass expensive.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <span>
#include <vector>

#include "symbolize/dwarf/abbreviations.h"

namespace heapprofd {

class UnitScan {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // A function, or a call that was inlined.
  struct Node {
    Dwarf_Die die;
    uint32_t parent;  // what it was inlined into; kNone for functions
    unsigned depth;   // 0 for functions
    // Where it was called, 0 when unknown or a function.
    uint64_t call_file;  // number in the unit's list of files
    uint32_t call_line;
  };

  // `addresses` in ascending order; must outlive this.
  UnitScan(const UnitBytes& unit, std::span<const uint64_t> addresses);

  // The innermost node that holds addresses[index], an index for node(); kNone.
  uint32_t Innermost(size_t index) const { return innermost_[index]; }

  const Node& node(uint32_t index) const { return nodes_[index]; }

  size_t nodes() const { return nodes_.size(); }

 private:
  struct AttributeValue {
    const AttributeForm* attribute = nullptr;  // null: the entry has none
    const uint8_t* at = nullptr;
  };

  // What an entry says that matters here.
  struct Attributes {
    uint64_t low = 0;
    uint64_t high = 0;
    bool has_low = false;
    bool has_high = false;
    bool high_is_size = false;
    bool has_ranges = false;
    AttributeValue call_file;
    AttributeValue call_line;
  };

  void Scan();
  bool ReadAttributes(const Abbreviation& abbreviation,
                      const uint8_t*& at,
                      Attributes& attributes) const;
  uint64_t ReadNumber(const AttributeValue& value) const;
  uint32_t AddNode(const uint8_t* entry,
                   bool is_inlined,
                   uint32_t parent,
                   const Attributes& attributes);
  void Assign(uint64_t start, uint64_t end, uint32_t node, bool& is_used);

  const UnitBytes& unit_;
  std::span<const uint64_t> addresses_;
  AbbreviationTable abbreviations_;
  uint64_t budget_;  // ranges and assignments
  std::vector<Node> nodes_;
  std::vector<uint32_t> innermost_;
};

}  // namespace heapprofd
