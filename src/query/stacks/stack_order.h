// The whole stacks of a trace as functions, in an order in which the stacks of each node of
// the call tree are neighbours: a node is a depth and a run of them. So nodes need not be
// made to be counted, summed or left out, and one order serves the trees of all dumps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/column.h"
#include "base/status.h"
#include "query/sqlite/database.h"
#include "query/stacks/frame_functions.h"
#include "tables/imported_trace.h"

namespace heapprofd {

class StackOrder {
 public:
  // Of the rows of trace.stacks, without the allocation functions that they end in
  // (query/allocators.h). nullopt: they have too many functions (2^28) for this.
  // kUnavailable when cancelled. The trace must outlive it.
  static Result<std::optional<StackOrder>> Of(const ImportedTrace& trace,
                                              const CancelFlag& cancelled);

  // Rows of trace.stacks, in order.
  std::span<const uint32_t> stacks() const { return stacks_.span(); }

  // With how many functions the stack at this place begins as the one before it does.
  uint32_t SharedAt(size_t place) const { return shared_[place]; }

  // Rows of functions(), the outermost first.
  std::span<const uint32_t> FunctionsOf(uint32_t stack) const {
    const uint32_t begin = stack == 0 ? 0 : ends_[stack - 1];
    return of_stacks_.span().subspan(begin, ends_[stack] - begin);
  }

  // The function that the stacks have at this depth, all of the same name: of the place in
  // the source only what all agree on.
  uint32_t FunctionAt(std::span<const uint32_t> stacks, uint32_t depth);

  const FrameFunctions& functions() const { return functions_; }

 private:
  // Neighbours that are the same up to a depth.
  struct EqualStacks {
    size_t begin;
    size_t end;
    uint32_t depth;
  };

  explicit StackOrder(const ImportedTrace& trace)
      : functions_(trace, NameStyle::kDemangled) {}

  // False: they have too many functions.
  Result<bool> AddStacks(const ImportedTrace& trace, const CancelFlag& cancelled);
  bool AddFunctions(std::span<const uint32_t> frames);
  bool AddInlined(std::span<const uint32_t> frames, size_t begin);
  void FindGroups();
  Status Sort(const CancelFlag& cancelled);
  Status SortInHalves(std::vector<EqualStacks> groups,
                      std::span<uint64_t> keys,
                      const CancelFlag& cancelled);
  Status SortGroups(std::vector<EqualStacks> groups,
                    std::span<uint64_t> keys,
                    const CancelFlag& cancelled);
  void SortGroup(const EqualStacks& equal,
                 std::span<uint64_t> keys,
                 std::vector<EqualStacks>& groups);
  void SortFew(std::span<uint64_t> keys, size_t place, uint32_t depth);
  uint64_t KeyAt(uint32_t stack, uint32_t depth) const;
  uint32_t FirstDifference(uint32_t a, uint32_t b, uint32_t depth) const;

  FrameFunctions functions_;
  Column<uint32_t> of_stacks_;  // functions, of one stack behind the other
  Column<uint32_t> ends_;       // by stack: in of_stacks_
  Column<uint32_t>
      group_of_;             // by function: those of one name and file are the same node
  Column<uint32_t> merged_;  // by group: what all of its functions agree on
  Column<uint32_t> stacks_;
  Column<uint32_t> shared_;
};

}  // namespace heapprofd
