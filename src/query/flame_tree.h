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
#include "base/status.h"
#include "query/database.h"
#include "trace/imported_trace.h"

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

  // Both parts, for who goes on with them: rows of the values by callsite (kNoId: none),
  // and the values.
  std::pair<Column<uint32_t>, Column<FlameValues>> Take() && {
    return {std::move(rows_), std::move(values_)};
  }

 private:
  Column<uint32_t> rows_;
  Column<FlameValues> values_;
};

enum class NameStyle : uint8_t {
  kAsRecorded,  // as linkers know the functions
  kDemangled,
};

enum class Merging : uint8_t {
  kByName,  // children of a node with one name and mapping are one node
  kNone,    // one node per function of each callsite; ids are the same in every tree
};

struct FlameNode {
  uint32_t parent = kNoId;  // row of the parent, smaller than the node's own
  uint32_t depth = 0;
  StringId name = kEmptyString;  // in FlameTree::names
  StringId mapping_name = kEmptyString;
  StringId source_file = kNoId;  // kNoId, too, when merged nodes disagree
  uint32_t line = 0;             // 0, too, when merged nodes disagree
  uint32_t self_row = kNoId;     // in FlameTree::values; kNoId: nothing of its own
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
  Column<UnmergedNode> unmerged;  // by node; empty: merged, ids are row numbers
  Column<FlameValues> values;
  Column<uint32_t> sum_rows;  // by node: in values; kNoId: nothing
  // Of the cumulative values of the figure that is of interest, by node; empty: the trace
  // does not tell.
  Column<double> variances;
  std::shared_ptr<const StringPool> names;

  std::string_view NameOf(uint32_t row) const { return names->Get(nodes[row].name); }

  uint32_t IdOf(uint32_t row) const { return unmerged.empty() ? row : unmerged[row].id; }

  FlameValues SelfOf(size_t row) const { return ValuesAt(nodes[row].self_row); }

  // Its own and what is below.
  FlameValues CumulativeOf(size_t row) const { return ValuesAt(sum_rows[row]); }

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
  std::span<const double> variances = {};  // by callsite; may be empty
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

void AddAllocations(const ImportedTrace& trace,
                    const DumpSelection& selection,
                    ValuesByCallsite* sums);

// Only these.
ValuesByCallsite SumAllocations(const ImportedTrace& trace,
                                const DumpSelection& selection);

}  // namespace heapprofd
