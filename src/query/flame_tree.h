// Call trees: the callsites of a profile expanded to functions (an address can hold
// several, inlined into each other) with what was allocated in each and below.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  double variance = 0;  // of the figure that is of interest, when the trace tells

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
  std::string_view name;  // of the trace, or of the tree
  StringId mapping_name = kEmptyString;
  StringId source_file = kNoId;  // kNoId, too, when merged nodes disagree
  uint32_t line = 0;             // 0, too, when merged nodes disagree
  bool is_inlined = false;
  bool is_leaf_function = false;  // the innermost function of its callsite
  FlameValues self;
  FlameValues cumulative;
};

struct FlameTree {
  std::vector<FlameNode> nodes;  // parents before children
  StringPool names;              // demangled ones
};

struct FlameOptions {
  NameStyle names = NameStyle::kDemangled;
  Merging merging = Merging::kByName;
};

// The tree of the callsites with values and of their callers. kUnavailable when
// cancelled.
Result<FlameTree> BuildFlameTree(const ImportedTrace& trace,
                                 const ValuesByCallsite& values,
                                 const FlameOptions& options,
                                 const CancelFlag& cancelled);

// Sums what is below each node. Parents come before children.
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
