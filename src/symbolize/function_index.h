// The functions of one compile unit by address, and the calls that the compiler inlined
// into one of them.
//
// Each unit's tree of entries is walked once for all addresses asked of it, each
// function's body once for all addresses in it. Trees are foreign: a budget of entries
// stops those that lead around in circles.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

#include "symbolize/range_map.h"
#include "symbolize/unit_index.h"

namespace heapprofd {

// How many entries and ranges the walks of one unit may still visit, together.
using WalkBudget = uint64_t;

class FunctionIndex {
 public:
  FunctionIndex(Dwarf_Die root, WalkBudget& budget);

  // The function that holds the address, as an index for function(); RangeMap's rules.
  std::optional<uint32_t> Find(uint64_t address) const {
    return by_address_.Find(address);
  }

  Dwarf_Die function(uint32_t index) const { return functions_[index]; }

 private:
  void AddChildren(Dwarf_Die* parent, unsigned depth);
  void AddRanges(Dwarf_Die* function);

  WalkBudget& budget_;
  std::vector<Dwarf_Die> functions_;
  RangeMap<uint32_t> by_address_;
};

class InlineTree {
 public:
  InlineTree(Dwarf_Die function, WalkBudget& budget);

  // The inlined calls that the address lies in, innermost first; empty: in the function
  // itself.
  std::vector<Dwarf_Die> Find(uint64_t address) const;

 private:
  static constexpr uint32_t kNoCall = UINT32_MAX;

  struct Call {
    Dwarf_Die die;
    uint32_t parent;  // index of the call that this one was inlined into
  };

  void AddChildren(Dwarf_Die* parent, uint32_t call, unsigned depth);
  void AddCall(Dwarf_Die* die, uint32_t parent, unsigned depth);

  WalkBudget& budget_;
  std::vector<Call> calls_;
  RangeMap<uint32_t> by_address_;
};

}  // namespace heapprofd
