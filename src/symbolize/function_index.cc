#include "symbolize/function_index.h"

#include <dwarf.h>

namespace heapprofd {
namespace {

// Namespaces, types, blocks and inlined calls inside each other; compilers stay well
// below 100.
constexpr unsigned kMaxDepth = 256;

// Calls visit(die) for each child, while the budget lasts.
template <typename Visit>
void ForEachChild(Dwarf_Die* parent, WalkBudget& budget, Visit visit) {
  Dwarf_Die child;
  if (dwarf_child(parent, &child) != 0)
    return;
  do {
    if (budget == 0)
      return;
    --budget;
    visit(&child);
  } while (dwarf_siblingof(&child, &child) == 0);
}

// Calls visit(start, end) for each range of the entry, while the budget lasts.
template <typename Visit>
void ForEachRangeWithin(Dwarf_Die* die, WalkBudget& budget, Visit visit) {
  budget -= ForEachRange(die, budget, visit);
}

}  // namespace

FunctionIndex::FunctionIndex(Dwarf_Die root, WalkBudget& budget) : budget_(budget) {
  AddChildren(&root, 0);
  by_address_.Build();
}

void FunctionIndex::AddChildren(Dwarf_Die* parent, unsigned depth) {
  if (depth > kMaxDepth)
    return;
  ForEachChild(parent, budget_, [&](Dwarf_Die* child) {
    switch (dwarf_tag(child)) {
      case DW_TAG_subprogram:
        AddRanges(child);
        AddChildren(child,
                    depth + 1);  // gcc puts methods of local classes, as lambdas, in here
        break;
      case DW_TAG_lexical_block:
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
      case DW_TAG_union_type:
      case DW_TAG_enumeration_type:  // Rust: methods of an enum
        AddChildren(child, depth + 1);
        break;
      default:
        break;
    }
  });
}

void FunctionIndex::AddRanges(Dwarf_Die* function) {
  const auto index = static_cast<uint32_t>(functions_.size());
  bool has_code = false;
  ForEachRangeWithin(function, budget_, [&](uint64_t start, uint64_t end) {
    by_address_.Add(start, end, index);
    has_code = true;
  });
  if (has_code)
    functions_.push_back(*function);
}

InlineTree::InlineTree(Dwarf_Die function, WalkBudget& budget) : budget_(budget) {
  AddChildren(&function, kNoCall, 0);
  by_address_.Build();
}

void InlineTree::AddChildren(Dwarf_Die* parent, uint32_t call, unsigned depth) {
  if (depth > kMaxDepth)
    return;
  ForEachChild(parent, budget_, [&](Dwarf_Die* child) {
    switch (dwarf_tag(child)) {
      case DW_TAG_inlined_subroutine:
        AddCall(child, call, depth);
        break;
      case DW_TAG_lexical_block:
      case DW_TAG_try_block:
      case DW_TAG_catch_block:
      case DW_TAG_with_stmt:
        AddChildren(child, call, depth + 1);
        break;
      default:
        break;
    }
  });
}

void InlineTree::AddCall(Dwarf_Die* die, uint32_t parent, unsigned depth) {
  const auto index = static_cast<uint32_t>(calls_.size());
  calls_.push_back({.die = *die, .parent = parent});
  AddChildren(die, index, depth + 1);
  // Added after its children: of equal ranges the first added wins, which must be the
  // innermost.
  ForEachRangeWithin(die, budget_, [&](uint64_t start, uint64_t end) {
    by_address_.Add(start, end, index);
  });
}

std::vector<Dwarf_Die> InlineTree::Find(uint64_t address) const {
  std::vector<Dwarf_Die> chain;
  uint32_t call = by_address_.Find(address).value_or(kNoCall);
  for (; call != kNoCall; call = calls_[call].parent)
    chain.push_back(calls_[call].die);
  return chain;
}

}  // namespace heapprofd
