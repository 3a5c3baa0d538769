// Call trees: the callsites of a profile expanded to functions (an address can hold
// several, inlined into each other) with what was allocated in each and below.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/column.h"
#include "base/small_numbers.h"
#include "base/status.h"
#include "query/sqlite/database.h"
#include "query/stacks/frame_functions.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// What is summed over allocations. Freed ones count negative in size and count.
struct FlameValues {
  int64_t count = 0;
  int64_t size = 0;
  int64_t alloc_count = 0;
  int64_t alloc_size = 0;

  FlameValues& operator+=(const FlameValues& other);

  bool IsZero() const {
    return count == 0 && size == 0 && alloc_count == 0 && alloc_size == 0;
  }
};

// Most callsites are only on the way to others and have none.
class ValuesByCallsite {
 public:
  explicit ValuesByCallsite(size_t callsites) { rows_.resize(callsites, kNoId); }

  // Of callsites.
  size_t size() const { return rows_.size(); }

  FlameValues operator[](size_t callsite) const {
    return rows_[callsite] == kNoId ? FlameValues() : values_[rows_[callsite]];
  }

  // Makes room for the callsite's values. The reference ends with the next call.
  FlameValues& At(size_t callsite) {
    if (rows_[callsite] == kNoId) {
      rows_[callsite] = static_cast<uint32_t>(values_.size());
      values_.push_back({});
    }
    return values_[rows_[callsite]];
  }

  // Adds the callsite's values, and variance, to those of another.
  void Move(size_t from, size_t to) {
    const uint32_t row = std::exchange(rows_[from], kNoId);
    if (rows_[to] == kNoId) {
      rows_[to] = row;
    } else if (row != kNoId) {
      values_[rows_[to]] += values_[row];
      if (row < variances_.size())
        AddVariance(to, variances_[row]);
    }
  }

  // Of the one figure that is of interest. Until the first is added the variances are
  // unknown.
  void AddVariance(size_t callsite, double more) {
    At(callsite);
    variances_.resize(values_.size(), 0);
    variances_[rows_[callsite]] += more;
  }

  bool has_variances() const { return !variances_.empty(); }

  double VarianceOf(size_t callsite) const {
    return rows_[callsite] < variances_.size() ? variances_[rows_[callsite]] : 0;
  }

  // All parts, for who goes on with them.
  struct Parts {
    Column<uint32_t> rows;  // of the values, by callsite; kNoId: none
    Column<FlameValues> values;
    Column<double> variances;  // of each of `values`; empty: unknown
  };

  Parts Take() && {
    if (has_variances())
      variances_.resize(values_.size(), 0);
    return {std::move(rows_), std::move(values_), std::move(variances_)};
  }

 private:
  Column<uint32_t> rows_;
  Column<FlameValues> values_;
  Column<double> variances_;
};

enum class Merging : uint8_t {
  kByName,  // children of a node with one name and mapping are one node
  kNone,    // one node per function of each callsite; ids are the same in every tree
};

struct FlameNode {
  uint32_t parent = kNoId;    // row of the parent, smaller than the node's own
  uint32_t function = 0;      // in FlameTree::functions
  uint32_t self_row = kNoId;  // in FlameTree::values; kNoId: nothing of its own
};

// What is told only of trees that are not merged.
struct UnmergedNode {
  uint32_t id = 0;
  uint32_t callsite = 0;
  bool is_inlined = false;
  bool is_leaf_function = false;  // the innermost function of its callsite
};

// Trees of deep stacks have many nodes, most of them with no memory of their own and one
// child: all nodes of such a chain share one sum.
struct FlameTree {
  Column<FlameNode> nodes;        // parents before children
  SmallNumbers depths;            // by node
  Column<UnmergedNode> unmerged;  // by node; empty: merged, ids are row numbers
  FunctionTable functions;
  Column<FlameValues> values;
  Column<double> variances;   // of each of `values`; empty: the trace does not tell
  Column<uint32_t> sum_rows;  // by node: in values; kNoId: nothing
  std::shared_ptr<const StringPool> names;

  const TreeFunction& FunctionOf(size_t row) const {
    return functions[nodes[row].function];
  }

  std::string_view NameOf(size_t row) const { return names->Get(FunctionOf(row).name); }

  uint32_t IdOf(uint32_t row) const { return unmerged.empty() ? row : unmerged[row].id; }

  FlameValues SelfOf(size_t row) const { return ValuesAt(nodes[row].self_row); }

  // Its own and what is below.
  FlameValues CumulativeOf(size_t row) const { return ValuesAt(sum_rows[row]); }

  // Of the cumulative value; only when they are known.
  double VarianceOf(size_t row) const {
    return sum_rows[row] == kNoId ? 0 : variances[sum_rows[row]];
  }

  // Adds a row of the values, and its variance, to another.
  void AddValues(uint32_t to, uint32_t from);

  // Adds the next node and its depth; returns its row.
  uint32_t AddNode(const FlameNode& node);

  // To a node's own values; sums are wrong until AddCumulative.
  void AddSelf(size_t row, const FlameValues& more);

 private:
  FlameValues ValuesAt(uint32_t row) const {
    return row == kNoId ? FlameValues() : values[row];
  }
};

struct FlameOptions {
  NameStyle names = NameStyle::kDemangled;
  Merging merging = Merging::kByName;
};

// The tree of the callsites with values and of their callers; as recorded, the names are
// the trace's. kUnavailable when cancelled.
Result<FlameTree> BuildFlameTree(const ImportedTrace& trace,
                                 ValuesByCallsite values,
                                 const FlameOptions& options,
                                 const CancelFlag& cancelled);

// By row: whether a node further out is of the same kind. `kinds` by row; nodes of
// kind kNoId are like no other.
std::vector<bool> HasSameAbove(const FlameTree& tree, std::span<const uint32_t> kinds);

// Sums what is below each node.
void AddCumulative(FlameTree* tree);

// Only the nodes whose name contains `text` (in any case), with what is below and above
// them. Cumulative values count what is left.
FlameTree Focus(FlameTree tree, std::string_view text);

// Which allocations to sum.
struct DumpSelection {
  uint32_t upid = kNoId;   // kNoId: all processes
  StringId heap = kNoId;   // kNoId: all heaps
  int64_t ts = INT64_MAX;  // up to and including this time
};

// What a row of heap_profile_allocation adds to the sums.
FlameValues AllocationAt(const ImportedTrace& trace, size_t row);

void AddAllocations(const ImportedTrace& trace,
                    const DumpSelection& selection,
                    ValuesByCallsite* sums);

// Only these.
ValuesByCallsite SumAllocations(const ImportedTrace& trace,
                                const DumpSelection& selection);

}  // namespace heapprofd
