#include "query/objects/graph_of_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>

#include "object_graph/dominators.h"
#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

constexpr std::array kUsualWeak = {HeapClassKind::kWeakReference};

class GraphOfRowsTest : public testing::Test {
 protected:
  uint32_t AddClass(const char* name, HeapClassKind kind = HeapClassKind::kNormal) {
    tables_.classes.push_back({.name = builder_.Intern(name), .kind = kind});
    return static_cast<uint32_t>(tables_.classes.size() - 1);
  }

  uint32_t AddRow(uint32_t type, int64_t size, bool is_root = false, int64_t native = 0) {
    HeapObjectTable& rows = tables_.objects;
    rows.graph.push_back(0);
    rows.type.push_back(type);
    rows.self_size.push_back(size);
    rows.native_size.push_back(native);
    rows.first_reference.push_back(kNoId);
    rows.reference_count.push_back(0);
    rows.root_type.push_back(is_root ? HeapRootType::kJniGlobal : HeapRootType::kNone);
    return static_cast<uint32_t>(rows.row_count() - 1);
  }

  // Those of one owner one behind the other.
  void Refer(uint32_t owner, uint32_t owned, const char* field = "Node.next") {
    uint32_t& first = tables_.objects.first_reference[owner];
    if (first == kNoId)
      first = static_cast<uint32_t>(tables_.references.row_count());
    ++tables_.objects.reference_count[owner];
    tables_.references.owner.push_back(owner);
    tables_.references.owned.push_back(owned);
    tables_.references.field_name.push_back(builder_.Intern(field));
  }

  GraphOfRows Load(uint32_t first, std::span<const HeapClassKind> weak = kUsualWeak) {
    tables_.graphs.push_back(
        {.first_object = first,
         .object_count = static_cast<uint32_t>(tables_.objects.row_count()) - first});
    return LoadGraphOfRows(trace_, static_cast<uint32_t>(tables_.graphs.size() - 1),
                           weak);
  }

  static std::vector<uint64_t> Retained(const GraphOfRows& heap) {
    const std::atomic<bool> never = false;
    const Result<DominatorTree> tree = FindDominators(heap.graph, never);
    const Column<uint64_t> sizes = RetainedSizes(heap.graph, tree.value());
    return {sizes.begin(), sizes.end()};
  }

  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
  HeapGraphTables& tables_ = trace_.heap_graph;
};

TEST_F(GraphOfRowsTest, ObjectsOfTheHeapThatIsMeantHaveTheirSizesAndHolders) {
  const uint32_t node = AddClass("Node");
  const uint32_t other = AddRow(node, 1000, /*is_root=*/true);  // of another heap
  const uint32_t root = AddRow(node, 1, /*is_root=*/true);
  const uint32_t held = AddRow(node, 2);
  AddRow(node, 4);
  Refer(other, held);
  Refer(root, kNoId);
  Refer(root, held);
  Refer(held, other);
  Refer(held, held);
  const GraphOfRows heap = Load(root);
  EXPECT_EQ(heap.graph.object_count(), 3u);
  EXPECT_EQ(Retained(heap), (std::vector<uint64_t>{3, 2, 0}));
  EXPECT_EQ(heap.RowOf(1), held);
  EXPECT_EQ(heap.ObjectOf(held), 1u);
  EXPECT_EQ(heap.ObjectOf(other), kNoObject);
  EXPECT_EQ(heap.ObjectOf(99), kNoObject);
  EXPECT_EQ(heap.graph.roots()[0].kind, static_cast<uint32_t>(HeapRootType::kJniGlobal));
}

TEST_F(GraphOfRowsTest, WhatIsWeakIsAskedFor) {
  const uint32_t weak = AddRow(
      AddClass("java.lang.ref.WeakReference", HeapClassKind::kWeakReference), 1, true);
  const uint32_t soft = AddRow(
      AddClass("java.lang.ref.SoftReference", HeapClassKind::kSoftReference), 2, true);
  const uint32_t node = AddClass("Node");
  Refer(weak, AddRow(node, 10), "java.lang.ref.Reference.referent");
  Refer(weak, AddRow(node, 20), "java.lang.ref.Reference.queue");
  Refer(soft, AddRow(node, 40), "java.lang.ref.Reference.referent");
  EXPECT_EQ(Retained(Load(0)), (std::vector<uint64_t>{21, 42, 0, 20, 40}));
  const std::array strict = {HeapClassKind::kWeakReference,
                             HeapClassKind::kSoftReference};
  EXPECT_EQ(Retained(Load(0, strict)), (std::vector<uint64_t>{21, 2, 0, 20, 0}));
  EXPECT_EQ(Retained(Load(0, {})), (std::vector<uint64_t>{31, 42, 10, 20, 40}));
}

TEST_F(GraphOfRowsTest, ObjectsOfClassesHaveOneTypeAndKeepTheirNames) {
  const uint32_t a = AddRow(AddClass("java.lang.Class<A>"), 1, true);
  const uint32_t b = AddRow(AddClass("java.lang.Class<b>"), 2, true);
  const uint32_t of_all = AddRow(AddClass("java.lang.Class"), 4, true);
  tables_.classes[tables_.objects.type[b]].deobfuscated_name =
      builder_.Intern("java.lang.Class<Better>");
  const GraphOfRows heap = Load(0);
  ASSERT_EQ(heap.graph.types().size(), 1u);
  EXPECT_EQ(heap.graph.types()[0].name, "java.lang.Class");
  EXPECT_EQ(heap.type_of_classes, 0u);
  EXPECT_EQ(ClassStoodFor(trace_, a), "A");
  EXPECT_EQ(ClassStoodFor(trace_, b), "Better");
  EXPECT_EQ(ClassStoodFor(trace_, of_all), "");
}

TEST_F(GraphOfRowsTest, MemoryOutsideIsHeldByWhatOwnsIt) {
  const uint32_t bitmap = AddClass("Bitmap");
  AddRow(bitmap, 1, true, 100);
  AddRow(bitmap, 2, false, 200);
  AddRow(bitmap, -5, true, -7);
  const GraphOfRows heap = Load(0);
  EXPECT_EQ(heap.graph.object_count(), 5u);
  EXPECT_EQ(Retained(heap), (std::vector<uint64_t>{101, 0, 0, 100, 0}));
  EXPECT_EQ(heap.graph.types()[heap.graph.TypeOf(4)].name, "[native] Bitmap");
  EXPECT_EQ(heap.graph.SizeOf(4), 200u);
  EXPECT_EQ(heap.RowOf(4), 1u);
}

// One name may be that of many classes.
TEST_F(GraphOfRowsTest, LongNamesAreCut) {
  const uint32_t type = AddClass(std::string(100'000, 'x').c_str());
  AddRow(type, 1, true, 8);
  const GraphOfRows heap = Load(0);
  EXPECT_EQ(heap.graph.types()[heap.graph.TypeOf(0)].name, std::string(1024, 'x'));
  EXPECT_EQ(heap.graph.types()[heap.graph.TypeOf(1)].name,
            "[native] " + std::string(1024, 'x').substr(0, 1024 - 9));
}

}  // namespace
}  // namespace heapprofd
