// Call trees: the callsites of a profile expanded to functions (an address can hold
// several, inlined into each other) with what was allocated in each and below.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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

// Indexed by callsite.
using ValuesByCallsite = std::vector<FlameValues>;

enum class NameStyle : uint8_t {
  kAsRecorded,  // as linkers know the functions
  kDemangled,
};

enum class Merging : uint8_t {
  kByName,  // children of a node with one name and mapping are one node
  kNone,    // one node per function of each callsite; ids are the same in every tree
};

struct FlameNode {
  uint32_t id = 0;
  uint32_t parent = kNoId;    // row of the parent, smaller than the node's own
  uint32_t callsite = kNoId;  // the first of those merged
  uint32_t depth = 0;
  StringId name = kEmptyString;  // in FlameTree::names
  StringId mapping_name = kEmptyString;
  StringId source_file = kNoId;  // kNoId, too, when merged nodes disagree
  uint32_t line = 0;             // 0, too, when merged nodes disagree
  bool is_inlined = false;
  bool is_leaf_function = false;  // the innermost function of its callsite
  FlameValues self;
};

struct FlameTree {
  Column<FlameNode> nodes;         // parents before children
  Column<FlameValues> cumulative;  // by node: its own and what is below
  // Of the cumulative values of the figure that is of interest, by node; empty: the trace
  // does not tell.
  Column<double> variances;
  std::shared_ptr<const StringPool> names;

  std::string_view NameOf(uint32_t row) const { return names->Get(nodes[row].name); }
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

ValuesByCallsite SumAllocations(const ImportedTrace& trace,
                                const DumpSelection& selection);

}  // namespace heapprofd
