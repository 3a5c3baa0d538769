#include "query/graph_node_names.h"

#include <gtest/gtest.h>

#include <string>

#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

class GraphNodeNamesTest : public testing::Test {
 protected:
  // The row of a class.
  uint32_t AddClass(const char* name) {
    trace_.heap_graph.classes.push_back({.name = builder_.Intern(name)});
    return static_cast<uint32_t>(trace_.heap_graph.classes.size() - 1);
  }

  std::string TextOf(StringId name) const {
    return std::string(names_.pool()->Get(name));
  }

  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
  GraphNodeNames names_{trace_};
};

TEST_F(GraphNodeNamesTest, ClassesOfOneNameHaveOne) {
  const uint32_t a = AddClass("A");
  const uint32_t other_a = AddClass("A");
  EXPECT_EQ(TextOf(names_.OfClass(a)), "A");
  EXPECT_EQ(names_.OfClass(a), names_.OfClass(other_a));
  EXPECT_EQ(TextOf(names_.OfClass(AddClass("B"))), "B");  // a class that came later
}

TEST_F(GraphNodeNamesTest, RootsAndNativeMemoryAreToldFromTheirClass) {
  const StringId name = names_.OfClass(AddClass("A"));
  const StringId root = names_.OfRoot(name, HeapRootType::kJniGlobal);
  EXPECT_EQ(TextOf(root), std::string("A [") + NameOf(HeapRootType::kJniGlobal) + "]");
  EXPECT_EQ(names_.OfRoot(name, HeapRootType::kJniGlobal), root);
  EXPECT_NE(names_.OfRoot(name, HeapRootType::kNone), root);
  EXPECT_EQ(TextOf(names_.OfNative(name)), "[native] A");
  EXPECT_EQ(TextOf(names_.OfNative(root)), "[native] " + TextOf(root));
}

// Node ids of one trace are compared with those of another.
TEST_F(GraphNodeNamesTest, HashesAreThoseOfTheTextAlone) {
  const uint64_t hash = names_.HashOf(names_.OfClass(AddClass("A")));
  GraphNodeNames others(trace_);
  AddClass("B");
  others.OfClass(1);  // its ids are others
  EXPECT_EQ(others.HashOf(others.OfClass(0)), hash);
  EXPECT_NE(others.HashOf(others.OfClass(1)), hash);
}

}  // namespace
}  // namespace heapprofd
