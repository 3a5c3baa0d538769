#include "query/graph_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

constexpr uint32_t kRoot = kNoId;

// Objects of one graph, each held by one before it.
class GraphTreeTest : public testing::Test {
 protected:
  void Add(const char* name, uint32_t owner, int64_t native_size = 0) {
    HeapGraphTables& tables = trace_.heap_graph;
    const auto row = static_cast<uint32_t>(tables.objects.graph.size());
    tables.classes.push_back({.name = builder_.Intern(name)});
    tables.objects.graph.push_back(0);
    tables.objects.type.push_back(row);
    tables.objects.self_size.push_back(16);
    tables.objects.native_size.push_back(native_size);
    tables.objects.root_distance.push_back(
        owner == kRoot ? 0 : tables.objects.root_distance[owner] + 1);
    tables.objects.root_type.push_back(owner == kRoot ? HeapRootType::kJniGlobal
                                                      : HeapRootType::kNone);
    tables.objects.heap_type.push_back(HeapType::kApp);
    owners_.push_back(owner);
  }

  // "A 16 1, A;B 16 1": each node's own bytes and objects.
  std::string Tree(const GraphTreeOptions& options) {
    AddReferences();
    const uint32_t graph = 0;
    const CancelFlag never = false;
    const Result<GraphTree> made = BuildGraphTree(trace_, {&graph, 1}, options, never);
    EXPECT_TRUE(made.ok());
    const FlameTree& tree = made.value().tree;
    std::string text;
    std::vector<std::string> paths;
    for (size_t row = 0; row < tree.nodes.size(); ++row) {
      const FlameNode& node = tree.nodes[row];
      const std::string above = node.parent == kNoId ? "" : paths[node.parent] + ";";
      paths.push_back(above + std::string(tree.NameOf(row)));
      const FlameValues own = tree.SelfOf(row);
      text += (row == 0 ? "" : ", ") + paths.back() + " " + std::to_string(own.size) +
              " " + std::to_string(own.count);
    }
    return text + (made.value().is_folded ? " folded" : "");
  }

 private:
  void AddReferences() {
    HeapGraphTables& tables = trace_.heap_graph;
    const auto objects = static_cast<uint32_t>(owners_.size());
    tables.graphs.push_back({.upid = builder_.processes().ProcessOf(1),
                             .ts = 5,
                             .heap_size = {},
                             .object_count = objects});
    for (uint32_t owner = 0; owner < objects; ++owner) {
      const auto first = static_cast<uint32_t>(tables.references.owner.size());
      for (uint32_t owned = 0; owned < objects; ++owned) {
        if (owners_[owned] != owner)
          continue;
        tables.references.owner.push_back(owner);
        tables.references.owned.push_back(owned);
        tables.references.field_name.push_back(kEmptyString);
        tables.references.field_type_name.push_back(kEmptyString);
        tables.references.deobfuscated_field_name.push_back(kNoId);
      }
      tables.objects.first_reference.push_back(first);
      tables.objects.reference_count.push_back(
          static_cast<uint32_t>(tables.references.owner.size()) - first);
    }
  }

  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
  std::vector<uint32_t> owners_;
};

TEST_F(GraphTreeTest, ObjectsOfAPathOfClassesAreOneNode) {
  Add("A", kRoot);
  Add("B", 0);
  Add("B", 0);
  Add("C", 2, 5);
  EXPECT_EQ(Tree({.naming = GraphNaming::kClasses}),
            "A 16 1, A;B 32 2, A;B;C 16 1, A;B;C;[native] C 5 1");
}

// An object without room for a node is in the one above, and so is what hangs on it: B
// below A is another one's, and so are bytes outside the heap.
TEST_F(GraphTreeTest, WhatHangsOnAFoldedObjectIsWhereThatIs) {
  Add("A", kRoot, 5);
  Add("B", 0);
  Add("C", 0, 7);
  Add("B", 2);
  EXPECT_EQ(Tree({.naming = GraphNaming::kClasses, .max_nodes = 3}),
            "A 55 4, A;[native] A 5 1, A;B 16 1 folded");
}

}  // namespace
}  // namespace heapprofd
