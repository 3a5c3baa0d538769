// From values by callsite to a tree of functions, in three passes:
//   1. MarkUsed, from the last callsite to the first: which ones have values at or below.
//   2. AddCallsite, from the first on (callers come before what they call): one node per
//      function of the frame, found among the children of the caller's node by name
//      (FindNode), else new. A node has a row of values only if something was allocated
//      in it itself; rows are taken over from the input instead of copied.
//   3. AddCumulative, from the last node to the first: sums of whole subtrees.
#include "query/flame_tree.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "query/child_lists.h"
#include "query/sum.h"
#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

constexpr uint32_t kCallsitesPerCancelCheck = 1 << 14;

class TreeBuilder {
 public:
  TreeBuilder(const ImportedTrace& trace, const FlameOptions& options)
      : trace_(trace), options_(options), functions_(trace, options.names) {}

  Result<FlameTree> Build(ValuesByCallsite values, const CancelFlag& cancelled) {
    MarkUsed(values);
    ValuesByCallsite::Parts parts = std::move(values).Take();
    rows_ = std::move(parts.rows);
    tree_.values = std::move(parts.values);
    tree_.variances = std::move(parts.variances);
    for (uint32_t callsite = 0; callsite < rows_.size(); ++callsite) {
      if (callsite % kCallsitesPerCancelCheck == 0 && cancelled)
        return WasCancelled();
      if (is_used_[callsite])
        AddCallsite(callsite);
      if (options_.merging == Merging::kNone)
        next_id_ += functions_.CountAt(trace_.callsites.frame[callsite]);
    }
    // What is not needed any more makes room for the sums.
    rows_ = {};
    index_ = RowIndex();
    later_children_ = {};
    AddCumulative(&tree_);
    tree_.names = functions_.names();
    tree_.functions = std::move(functions_.table());
    return std::move(tree_);
  }

 private:
  // Callers have smaller ids than what they call.
  void MarkUsed(const ValuesByCallsite& values) {
    is_used_.assign(values.size(), false);
    for (size_t callsite = values.size(); callsite-- > 0;) {
      if (!values[callsite].IsZero())
        is_used_[callsite] = true;
      const uint32_t parent = trace_.callsites.parent[callsite];
      if (is_used_[callsite] && parent != kNoId)
        is_used_[parent] = true;
    }
  }

  void AddCallsite(uint32_t callsite) {
    const uint32_t caller = trace_.callsites.parent[callsite];
    const std::span<const uint32_t> functions =
        functions_.At(trace_.callsites.frame[callsite]);
    uint32_t row = caller == kNoId ? kNoId : rows_[caller];
    for (size_t i = functions.size(); i-- > 0;) {
      row = AddNode(row, functions[i]);
      if (options_.merging == Merging::kNone)
        tree_.unmerged.push_back(
            {.id = next_id_ + static_cast<uint32_t>(functions.size() - 1 - i),
             .callsite = callsite,
             .is_inlined = i + 1 < functions.size(),
             .is_leaf_function = i == 0});
    }
    TakeValues(rows_[callsite], tree_.nodes[row]);
    rows_[callsite] = row;
  }

  void TakeValues(uint32_t values, FlameNode& node) {
    if (values == kNoId)
      return;
    if (node.self_row == kNoId)
      node.self_row = values;
    else
      tree_.AddValues(node.self_row, values);
  }

  bool IsChild(uint32_t row, uint32_t parent, uint32_t function) const {
    const FlameNode& node = tree_.nodes[row];
    return node.parent == parent &&
           (node.function == function ||
            functions_.table()[node.function].HasSameName(functions_.table()[function]));
  }

  uint64_t HashOf(uint32_t parent, uint32_t function) const {
    return Mix(functions_.table()[function].NameHash() ^ parent);
  }

  // The child of this name, or `new_row`, which it is known by from here on. Stacks come
  // one by one, so most nodes have one child, and that is the next node.
  uint32_t FindNode(uint32_t parent, uint32_t function, uint32_t new_row) {
    const uint32_t next = parent == kNoId ? 0 : parent + 1;
    if (next == new_row || IsChild(next, parent, function))
      return next;
    index_.Prepare([this](uint32_t i) {
      const FlameNode& node = tree_.nodes[later_children_[i]];
      return HashOf(node.parent, node.function);
    });
    uint32_t& known = index_.Find(HashOf(parent, function), [&](uint32_t i) {
      return IsChild(later_children_[i], parent, function);
    });
    if (known != kNoId)
      return later_children_[known];
    known = static_cast<uint32_t>(later_children_.size());
    later_children_.push_back(new_row);
    index_.CountAdded();
    return new_row;
  }

  uint32_t AddNode(uint32_t parent, uint32_t function) {
    const auto row = static_cast<uint32_t>(tree_.nodes.size());
    if (options_.merging == Merging::kByName) {
      const uint32_t known = FindNode(parent, function, row);
      if (known != row) {
        if (tree_.nodes[known].function != function)
          tree_.nodes[known].function =
              functions_.table().Merge(tree_.nodes[known].function, function);
        return known;
      }
    }
    return tree_.AddNode({.parent = parent, .function = function});
  }

  const ImportedTrace& trace_;
  const FlameOptions options_;
  FlameTree tree_;
  FrameFunctions functions_;
  // By callsite: at first the row of its values, then that of its innermost function.
  Column<uint32_t> rows_;
  std::vector<bool> is_used_;
  Column<uint32_t> later_children_;  // all but those that come next to their parent
  RowIndex index_;                   // of later_children_, by parent and name
  uint32_t next_id_ = 0;
};

bool ContainsIgnoringCase(std::string_view text, std::string_view part) {
  const auto equal = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), equal) !=
         text.end();
}

}  // namespace

FlameValues& FlameValues::operator+=(const FlameValues& other) {
  count = Sum(count, other.count);
  size = Sum(size, other.size);
  alloc_count = Sum(alloc_count, other.alloc_count);
  alloc_size = Sum(alloc_size, other.alloc_size);
  return *this;
}

Result<FlameTree> BuildFlameTree(const ImportedTrace& trace,
                                 ValuesByCallsite values,
                                 const FlameOptions& options,
                                 const CancelFlag& cancelled) {
  return TreeBuilder(trace, options).Build(std::move(values), cancelled);
}

uint32_t FlameTree::AddNode(const FlameNode& node) {
  nodes.push_back(node);
  depths.push_back(node.parent == kNoId ? 0 : depths[node.parent] + 1);
  return static_cast<uint32_t>(nodes.size() - 1);
}

void FlameTree::AddValues(uint32_t to, uint32_t from) {
  values[to] += values[from];
  if (!variances.empty())
    variances[to] += variances[from];
}

void FlameTree::AddSelf(size_t row, const FlameValues& more) {
  uint32_t& self = nodes[row].self_row;
  if (self == kNoId) {
    self = static_cast<uint32_t>(values.size());
    values.push_back({});
  }
  values[self] += more;
}

void AddCumulative(FlameTree* tree) {
  Column<FlameValues>& values = tree->values;
  tree->sum_rows.clear();
  tree->sum_rows.resize(tree->nodes.size(), kNoId);
  std::vector<bool> has_own_sum(tree->nodes.size(), false);
  const auto add = [&](size_t node, uint32_t more) {
    uint32_t& sum = tree->sum_rows[node];
    if (sum == kNoId || more == kNoId) {
      sum = std::min(sum, more);  // one of them, or none
      return;
    }
    if (!has_own_sum[node]) {
      const uint32_t first = sum;
      sum = static_cast<uint32_t>(values.size());
      values.push_back(values[first]);
      if (!tree->variances.empty())
        tree->variances.push_back(tree->variances[first]);
      has_own_sum[node] = true;
    }
    tree->AddValues(sum, more);
  };
  for (size_t row = tree->nodes.size(); row-- > 0;) {
    add(row, tree->nodes[row].self_row);
    const uint32_t parent = tree->nodes[row].parent;
    if (parent != kNoId)
      add(parent, tree->sum_rows[row]);
  }
}

std::vector<bool> HasSameAbove(const FlameTree& tree, std::span<const uint32_t> kinds) {
  const size_t rows = tree.nodes.size();
  const ChildLists children =
      ChildListsOf(rows, [&tree](uint32_t row) { return tree.nodes[row].parent; });
  std::vector<uint32_t> pending;  // rows to enter; kNoId: the latest one is left
  uint32_t max_kind = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    if (tree.nodes[row].parent == kNoId)
      pending.push_back(row);
    if (kinds[row] != kNoId)
      max_kind = std::max(max_kind, kinds[row]);
  }
  std::vector<int32_t> open(size_t{max_kind} + 1, 0);  // nodes on the path, by kind
  const auto count = [&open](uint32_t kind, int32_t change) {
    if (kind != kNoId)
      open[kind] += change;
  };
  std::vector<uint32_t> path;
  std::vector<bool> result(rows, false);
  while (!pending.empty()) {
    const uint32_t row = pending.back();
    pending.pop_back();
    const uint32_t kind = kinds[row == kNoId ? path.back() : row];
    if (row == kNoId) {
      path.pop_back();
      count(kind, -1);
      continue;
    }
    result[row] = kind != kNoId && open[kind] > 0;
    count(kind, +1);
    path.push_back(row);
    pending.push_back(kNoId);
    for (uint32_t child = children.first[row]; child != kNoId;
         child = children.next[child])
      pending.push_back(child);
  }
  return result;
}

FlameTree Focus(FlameTree tree, std::string_view text) {
  HPD_CHECK(tree.variances.empty());  // nobody asks for those of a part
  enum class State : uint8_t { kOut, kAbove, kIn };
  std::vector<State> states(tree.nodes.size(), State::kOut);
  for (size_t row = 0; row < tree.nodes.size(); ++row) {
    const FlameNode& node = tree.nodes[row];
    if (ContainsIgnoringCase(tree.NameOf(row), text)) {
      states[row] = State::kIn;
      for (uint32_t at = node.parent; at != kNoId && states[at] == State::kOut;
           at = tree.nodes[at].parent)
        states[at] = State::kAbove;
    } else if (node.parent != kNoId && states[node.parent] == State::kIn) {
      states[row] = State::kIn;
    }
  }
  std::vector<uint32_t> new_rows(tree.nodes.size(), kNoId);
  const Column<FlameNode> all = std::exchange(tree.nodes, {});
  tree.depths = {};
  for (size_t row = 0; row < all.size(); ++row) {
    if (states[row] == State::kOut)
      continue;
    FlameNode node = all[row];
    if (node.parent != kNoId)
      node.parent = new_rows[node.parent];
    new_rows[row] = tree.AddNode(node);
  }
  AddCumulative(&tree);
  return tree;
}

FlameValues AllocationAt(const ImportedTrace& trace, size_t row) {
  const int64_t size = trace.allocations.size[row];
  const int64_t count = trace.allocations.count[row];
  const ImportedDump& dump = trace.dumps[trace.allocations.dump[row]];
  if (row - dump.first_allocation >= dump.first_live_row)
    return {count, size, 0, 0};
  return {count, size, std::max<int64_t>(count, 0), std::max<int64_t>(size, 0)};
}

void AddAllocations(const ImportedTrace& trace,
                    const DumpSelection& selection,
                    ValuesByCallsite* sums) {
  for (const ImportedDump& dump : trace.dumps) {
    if (dump.ts > selection.ts ||
        (selection.upid != kNoId && dump.upid != selection.upid) ||
        (selection.heap != kNoId && dump.heap_name != selection.heap))
      continue;
    for (size_t i = 0; i < dump.allocation_count; ++i) {
      const size_t row = dump.first_allocation + i;
      sums->At(trace.allocations.callsite[row]) += AllocationAt(trace, row);
    }
  }
}

ValuesByCallsite SumAllocations(const ImportedTrace& trace,
                                const DumpSelection& selection) {
  ValuesByCallsite sums(trace.callsite_limit());
  AddAllocations(trace, selection, &sums);
  return sums;
}

}  // namespace heapprofd
