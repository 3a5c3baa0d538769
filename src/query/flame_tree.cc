#include "query/flame_tree.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include "query/child_lists.h"
#include "query/sum.h"
#include "symbolize/demangle.h"
#include "trace/trace_builder.h"

namespace heapprofd {
namespace {

constexpr uint32_t kCallsitesPerCancelCheck = 1 << 14;

// One function at one address.
struct Function {
  StringId name;
  StringId source_file;
  uint32_t line;
  bool is_inlined;
};

class TreeBuilder {
 public:
  TreeBuilder(const ImportedTrace& trace, const FlameOptions& options)
      : trace_(trace), options_(options), demangled_(std::make_shared<StringPool>()) {
    if (options.names == NameStyle::kDemangled)
      name_ids_.assign(trace.strings.size(), kNoId);
  }

  Result<FlameTree> Build(ValuesByCallsite values, const CancelFlag& cancelled) {
    MarkUsed(values);
    std::tie(rows_, tree_.values) = std::move(values).Take();
    for (uint32_t callsite = 0; callsite < rows_.size(); ++callsite) {
      if (callsite % kCallsitesPerCancelCheck == 0 && cancelled)
        return Status(StatusCode::kUnavailable,
                      "cannot finish the query: it was cancelled");
      FunctionsOf(trace_.callsites.frame[callsite]);
      if (is_used_[callsite])
        AddCallsite(callsite);
      next_id_ += static_cast<uint32_t>(functions_.size());
    }
    // What is not needed any more makes room for the sums.
    rows_ = {};
    first_children_ = {};
    index_ = RowIndex();
    AddCumulative(&tree_);
    // The trace outlives everything that is made of it.
    tree_.names = options_.names == NameStyle::kDemangled
                      ? std::shared_ptr<const StringPool>(demangled_)
                      : std::shared_ptr<const StringPool>(demangled_, &trace_.strings);
    return std::move(tree_);
  }

 private:
  struct Key {
    uint32_t parent;
    uint32_t name;
    StringId mapping;

    bool operator==(const Key&) const = default;
  };

  static uint64_t HashOf(const Key& key) {
    uint64_t hash = key.parent * 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 29) ^ key.name) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 32) ^ key.mapping) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 31);
  }

  Key KeyOf(uint32_t row) const {
    const FlameNode& node = tree_.nodes[row];
    return {node.parent, node.name, node.mapping_name};
  }

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

  // Fills functions_, the innermost first.
  void FunctionsOf(uint32_t frame) {
    functions_.clear();
    const uint32_t set = trace_.frames.symbol_set[frame];
    const size_t end = set == kNoId ? 0 : trace_.symbols.EndOf(set);
    for (size_t row = set; row < end; ++row)
      functions_.push_back({trace_.symbols.name[row], trace_.symbols.source_file[row],
                            trace_.symbols.line[row], row + 1 < end});
    if (!functions_.empty())
      return;
    const StringId deobfuscated = trace_.frames.deobfuscated_name[frame];
    functions_.push_back(
        {deobfuscated != kNoId ? deobfuscated : trace_.frames.name[frame], kNoId, 0,
         false});
  }

  void AddCallsite(uint32_t callsite) {
    const uint32_t caller = trace_.callsites.parent[callsite];
    const uint32_t mapping = trace_.frames.mapping[trace_.callsites.frame[callsite]];
    const StringId mapping_name =
        mapping == kNoId ? kEmptyString : trace_.mappings[mapping].name;
    uint32_t row = caller == kNoId ? kNoId : rows_[caller];
    for (size_t i = functions_.size(); i-- > 0;) {
      row = AddNode(row, functions_[i], mapping_name);
      if (options_.merging == Merging::kNone)
        tree_.unmerged.push_back(
            {.id = next_id_ + static_cast<uint32_t>(functions_.size() - 1 - i),
             .callsite = callsite,
             .is_inlined = functions_[i].is_inlined,
             .is_leaf_function = i == 0});
    }
    TakeValues(rows_[callsite], tree_.nodes[row]);
    if (!options_.variances.empty()) {
      tree_.variances.resize(tree_.nodes.size(), 0);
      tree_.variances[row] += options_.variances[callsite];
    }
    rows_[callsite] = row;
  }

  void TakeValues(uint32_t values, FlameNode& node) {
    if (values == kNoId)
      return;
    if (node.self_row == kNoId)
      node.self_row = values;
    else
      tree_.values[node.self_row] += tree_.values[values];
  }

  // The node with this key, or `new_row`, which it is known by from here on.
  uint32_t FindNode(const Key& key, uint32_t new_row) {
    uint32_t& first = key.parent == kNoId ? first_root_ : first_children_[key.parent];
    if (first == kNoId)
      first = new_row;
    if (first == new_row || KeyOf(first) == key)
      return first;
    index_.Prepare([this](uint32_t i) { return HashOf(KeyOf(later_children_[i])); });
    uint32_t& known = index_.Find(
        HashOf(key), [&](uint32_t i) { return KeyOf(later_children_[i]) == key; });
    if (known != kNoId)
      return later_children_[known];
    known = static_cast<uint32_t>(later_children_.size());
    later_children_.push_back(new_row);
    index_.CountAdded();
    return new_row;
  }

  uint32_t AddNode(uint32_t parent, const Function& function, StringId mapping_name) {
    const uint32_t name = NameId(function.name);
    const auto row = static_cast<uint32_t>(tree_.nodes.size());
    if (options_.merging == Merging::kByName) {
      const uint32_t known = FindNode({parent, name, mapping_name}, row);
      if (known != row) {
        FlameNode& node = tree_.nodes[known];
        if (node.source_file != function.source_file)
          node.source_file = kNoId;
        if (node.line != function.line)
          node.line = 0;
        return known;
      }
      first_children_.push_back(kNoId);
    }
    FlameNode node;
    node.parent = parent;
    node.depth = parent == kNoId ? 0 : tree_.nodes[parent].depth + 1;
    node.name = name;
    node.mapping_name = mapping_name;
    node.source_file = function.source_file;
    node.line = function.line;
    tree_.nodes.push_back(node);
    return row;
  }

  // In demangled_ when names are demangled, else in the trace.
  uint32_t NameId(StringId name) {
    if (options_.names == NameStyle::kAsRecorded)
      return name;
    if (name >= name_ids_.size())
      return demangled_->Intern("unknown");
    uint32_t& id = name_ids_[name];
    if (id == kNoId) {
      const std::string_view text = trace_.Text(name);
      id = demangled_->Intern(text.empty() ? "unknown" : Demangle(text));
    }
    return id;
  }

  const ImportedTrace& trace_;
  const FlameOptions options_;
  FlameTree tree_;
  std::shared_ptr<StringPool> demangled_;
  std::vector<uint32_t> name_ids_;  // trace's id -> demangled_'s
  // By callsite: at first the row of its values, then that of its innermost function.
  Column<uint32_t> rows_;
  std::vector<bool> is_used_;
  std::vector<Function> functions_;  // of the current callsite
  // When nodes are merged: most have one child, which is found without an index.
  Column<uint32_t> first_children_;  // by node
  uint32_t first_root_ = kNoId;
  Column<uint32_t> later_children_;  // of all nodes
  RowIndex index_;                   // of later_children_, by key
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
      const FlameValues first = values[sum];
      sum = static_cast<uint32_t>(values.size());
      values.push_back(first);
      has_own_sum[node] = true;
    }
    values[sum] += values[more];
  };
  for (size_t row = tree->nodes.size(); row-- > 0;) {
    add(row, tree->nodes[row].self_row);
    const uint32_t parent = tree->nodes[row].parent;
    if (parent == kNoId)
      continue;
    add(parent, tree->sum_rows[row]);
    if (!tree->variances.empty())
      tree->variances[parent] += tree->variances[row];
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
    if (ContainsIgnoringCase(tree.names->Get(node.name), text)) {
      states[row] = State::kIn;
      for (uint32_t at = node.parent; at != kNoId && states[at] == State::kOut;
           at = tree.nodes[at].parent)
        states[at] = State::kAbove;
    } else if (node.parent != kNoId && states[node.parent] == State::kIn) {
      states[row] = State::kIn;
    }
  }
  std::vector<uint32_t> new_rows(tree.nodes.size(), kNoId);
  Column<FlameNode> kept;
  for (size_t row = 0; row < tree.nodes.size(); ++row) {
    if (states[row] == State::kOut)
      continue;
    new_rows[row] = static_cast<uint32_t>(kept.size());
    FlameNode node = tree.nodes[row];
    if (node.parent != kNoId)
      node.parent = new_rows[node.parent];
    kept.push_back(node);
  }
  tree.nodes = std::move(kept);
  AddCumulative(&tree);
  return tree;
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
      const int64_t size = trace.allocations.size[row];
      const int64_t count = trace.allocations.count[row];
      sums->At(trace.allocations.callsite[row]) += FlameValues{
          count, size, std::max<int64_t>(count, 0), std::max<int64_t>(size, 0)};
    }
  }
}

ValuesByCallsite SumAllocations(const ImportedTrace& trace,
                                const DumpSelection& selection) {
  ValuesByCallsite sums(trace.callsites.row_count());
  AddAllocations(trace, selection, &sums);
  return sums;
}

}  // namespace heapprofd
