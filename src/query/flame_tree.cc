#include "query/flame_tree.h"

#include <algorithm>
#include <cctype>

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
      : trace_(trace),
        options_(options),
        name_ids_(trace.strings.size(), kNoId),
        leaf_rows_(trace.callsites.row_count(), kNoId) {}

  Result<FlameTree> Build(const ValuesByCallsite& values, const CancelFlag& cancelled) {
    MarkUsed(values);
    for (uint32_t callsite = 0; callsite < leaf_rows_.size(); ++callsite) {
      if (callsite % kCallsitesPerCancelCheck == 0 && cancelled)
        return Status(StatusCode::kUnavailable,
                      "cannot finish the query: it was cancelled");
      FunctionsOf(trace_.callsites.frame[callsite]);
      if (is_used_[callsite])
        AddCallsite(callsite, values[callsite]);
      next_id_ += static_cast<uint32_t>(functions_.size());
    }
    AddCumulative(&tree_);
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

  // Callers have smaller ids than what they call.
  void MarkUsed(const ValuesByCallsite& values) {
    is_used_.assign(leaf_rows_.size(), false);
    for (size_t callsite = leaf_rows_.size(); callsite-- > 0;) {
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

  void AddCallsite(uint32_t callsite, const FlameValues& values) {
    const uint32_t caller = trace_.callsites.parent[callsite];
    const uint32_t mapping = trace_.frames.mapping[trace_.callsites.frame[callsite]];
    const StringId mapping_name =
        mapping == kNoId ? kEmptyString : trace_.mappings[mapping].name;
    uint32_t row = caller == kNoId ? kNoId : leaf_rows_[caller];
    for (size_t i = functions_.size(); i-- > 0;) {
      row = AddNode(row, functions_[i], mapping_name, callsite);
      FlameNode& node = tree_.nodes[row];
      if (options_.merging == Merging::kNone)
        node.id = next_id_ + static_cast<uint32_t>(functions_.size() - 1 - i);
      node.is_leaf_function |= i == 0;
    }
    tree_.nodes[row].self += values;
    leaf_rows_[callsite] = row;
  }

  uint32_t AddNode(uint32_t parent,
                   const Function& function,
                   StringId mapping_name,
                   uint32_t callsite) {
    const uint32_t name = NameId(function.name);
    const auto row = static_cast<uint32_t>(tree_.nodes.size());
    if (options_.merging == Merging::kByName) {
      const Key key{parent, name, mapping_name};
      index_.Prepare([this](uint32_t other) { return HashOf(keys_[other]); });
      uint32_t& known =
          index_.Find(HashOf(key), [&](uint32_t other) { return keys_[other] == key; });
      if (known != kNoId) {
        FlameNode& node = tree_.nodes[known];
        if (node.source_file != function.source_file)
          node.source_file = kNoId;
        if (node.line != function.line)
          node.line = 0;
        return known;
      }
      known = row;
      index_.CountAdded();
      keys_.push_back(key);
    }
    FlameNode node;
    node.id = row;
    node.parent = parent;
    node.callsite = callsite;
    node.depth = parent == kNoId ? 0 : tree_.nodes[parent].depth + 1;
    node.name = options_.names == NameStyle::kDemangled ? tree_.names.Get(name)
                                                        : trace_.Text(name);
    node.mapping_name = mapping_name;
    node.source_file = function.source_file;
    node.line = function.line;
    node.is_inlined = function.is_inlined;
    tree_.nodes.push_back(node);
    return row;
  }

  // In tree_.names when names are demangled, else in the trace.
  uint32_t NameId(StringId name) {
    if (options_.names == NameStyle::kAsRecorded)
      return name;
    if (name >= name_ids_.size())
      return tree_.names.Intern("unknown");
    uint32_t& id = name_ids_[name];
    if (id == kNoId) {
      const std::string_view text = trace_.Text(name);
      id = tree_.names.Intern(text.empty() ? "unknown" : Demangle(text));
    }
    return id;
  }

  const ImportedTrace& trace_;
  const FlameOptions options_;
  FlameTree tree_;
  std::vector<uint32_t> name_ids_;   // trace's id -> tree's id
  std::vector<uint32_t> leaf_rows_;  // callsite -> row of its innermost function
  std::vector<bool> is_used_;
  std::vector<Function> functions_;  // of the current callsite
  RowIndex index_;                   // nodes by key, when they are merged
  std::vector<Key> keys_;            // by row
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
  variance += other.variance;
  return *this;
}

Result<FlameTree> BuildFlameTree(const ImportedTrace& trace,
                                 const ValuesByCallsite& values,
                                 const FlameOptions& options,
                                 const CancelFlag& cancelled) {
  return TreeBuilder(trace, options).Build(values, cancelled);
}

void AddCumulative(FlameTree* tree) {
  for (FlameNode& node : tree->nodes)
    node.cumulative = node.self;
  for (size_t row = tree->nodes.size(); row-- > 0;) {
    const FlameNode& node = tree->nodes[row];
    if (node.parent != kNoId)
      tree->nodes[node.parent].cumulative += node.cumulative;
  }
}

FlameTree Focus(FlameTree tree, std::string_view text) {
  enum class State : uint8_t { kOut, kAbove, kIn };
  std::vector<State> states(tree.nodes.size(), State::kOut);
  for (size_t row = 0; row < tree.nodes.size(); ++row) {
    const FlameNode& node = tree.nodes[row];
    if (ContainsIgnoringCase(node.name, text)) {
      states[row] = State::kIn;
      for (uint32_t at = node.parent; at != kNoId && states[at] == State::kOut;
           at = tree.nodes[at].parent)
        states[at] = State::kAbove;
    } else if (node.parent != kNoId && states[node.parent] == State::kIn) {
      states[row] = State::kIn;
    }
  }
  std::vector<uint32_t> new_rows(tree.nodes.size(), kNoId);
  std::vector<FlameNode> kept;
  for (size_t row = 0; row < tree.nodes.size(); ++row) {
    if (states[row] == State::kOut)
      continue;
    new_rows[row] = static_cast<uint32_t>(kept.size());
    FlameNode node = tree.nodes[row];
    node.id = new_rows[row];
    if (node.parent != kNoId)
      node.parent = new_rows[node.parent];
    kept.push_back(node);
  }
  tree.nodes = std::move(kept);
  AddCumulative(&tree);
  return tree;
}

ValuesByCallsite SumAllocations(const ImportedTrace& trace,
                                const DumpSelection& selection) {
  ValuesByCallsite values(trace.callsites.row_count());
  for (const ImportedDump& dump : trace.dumps) {
    if (dump.ts > selection.ts ||
        (selection.upid != kNoId && dump.upid != selection.upid) ||
        (selection.heap != kNoId && dump.heap_name != selection.heap))
      continue;
    for (size_t i = 0; i < dump.allocation_count; ++i) {
      const size_t row = dump.first_allocation + i;
      const int64_t size = trace.allocations.size[row];
      const int64_t count = trace.allocations.count[row];
      values[trace.allocations.callsite[row]] += FlameValues{
          count, size, std::max<int64_t>(count, 0), std::max<int64_t>(size, 0), 0};
    }
  }
  return values;
}

}  // namespace heapprofd
