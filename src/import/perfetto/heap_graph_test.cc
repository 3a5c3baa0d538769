#include "tables/heap_graph.h"

#include <gtest/gtest.h>

#include "import/perfetto/test_traces.h"

namespace heapprofd {
namespace {

class HeapGraphTest : public testing::Test {
 protected:
  std::string_view Text(StringId id) const { return test_->trace.Text(id); }

  std::unique_ptr<TestTrace> test_ = ReadFixture("heap_graph");
  const HeapGraphTables& tables_ = test_->trace.heap_graph;
  const HeapObjectTable& objects_ = tables_.objects;
};

TEST_F(HeapGraphTest, AGraphHasTheObjectsOfAllItsPackets) {
  ASSERT_EQ(tables_.graphs.size(), 1u);
  EXPECT_EQ(tables_.graphs[0].ts, 600);
  EXPECT_EQ(test_->trace.processes[tables_.graphs[0].upid].pid, 12);
  EXPECT_EQ(tables_.graphs[0].heap_size, 4096);
  EXPECT_FALSE(tables_.graphs[0].truncated);
  EXPECT_EQ(tables_.graphs[0].object_count, 6u);  // one is of an unknown type
  EXPECT_EQ(test_->trace.stats.Get(StatId::kHeapGraphMalformedPacket, 12), 1);
}

TEST_F(HeapGraphTest, SizesAreTheObjectsOrTheirClasses) {
  EXPECT_EQ(objects_.self_size[0], 24);
  EXPECT_EQ(objects_.self_size[2], 1000);
  EXPECT_EQ(objects_.self_size[4], 16);
}

TEST_F(HeapGraphTest, ClassesKnowTheirSuperclassAndLocation) {
  EXPECT_EQ(Text(tables_.classes[1].name), "com.example.Node");
  EXPECT_EQ(tables_.classes[1].superclass, 0u);
  EXPECT_EQ(Text(tables_.classes[0].location), "/data/app/base.apk");
  EXPECT_TRUE(tables_.classes[3].is_array);
  EXPECT_STREQ(NameOf(tables_.classes[2].kind), "KIND_WEAK_REFERENCE");
}

TEST_F(HeapGraphTest, ReferencesHaveTheFieldsOfTheClassAndThenOfItsSuperclasses) {
  ASSERT_EQ(tables_.references.row_count(), 5u);
  EXPECT_EQ(objects_.first_reference[0], 0u);
  EXPECT_EQ(objects_.reference_count[0], 2u);
  EXPECT_EQ(tables_.references.owned[0], 1u);
  EXPECT_EQ(Text(tables_.references.field_name[0]), "com.example.Node.next");
  EXPECT_EQ(Text(tables_.references.field_type_name[0]), "java.lang.Object");
  EXPECT_EQ(tables_.references.owned[1], kNoId);  // null
  EXPECT_EQ(Text(tables_.references.field_name[1]), "com.example.Base.owner");
  EXPECT_EQ(tables_.references.owned[2], 2u);  // 100 + 2
  EXPECT_EQ(objects_.first_reference[2], kNoId);
}

TEST_F(HeapGraphTest, TheStrongestRootCountsAndImagesAreRoots) {
  EXPECT_STREQ(NameOf(objects_.root_type[0]), "ROOT_JNI_GLOBAL");
  EXPECT_EQ(objects_.root_type[1], HeapRootType::kNone);
  EXPECT_EQ(objects_.heap_type[1], HeapType::kApp);  // it sticks
  EXPECT_EQ(objects_.heap_type[5], HeapType::kZygote);
  EXPECT_EQ(objects_.root_type[5], HeapRootType::kVmInternal);
}

TEST_F(HeapGraphTest, WeakReferentsAreNotReachableThroughTheReference) {
  EXPECT_EQ(objects_.root_distance[0], 0);
  EXPECT_EQ(objects_.root_distance[1], 1);
  EXPECT_EQ(objects_.root_distance[2], 2);
  EXPECT_EQ(objects_.root_distance[3], 0);
  EXPECT_EQ(objects_.root_distance[4], -1);
}

}  // namespace
}  // namespace heapprofd
