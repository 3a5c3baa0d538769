#include "report/buffer_owners.h"

#include <gtest/gtest.h>

#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

constexpr uint32_t kHeldByARoot = kNoId;

// Objects of one graph, each held by one before it, and buffers of some.
class BufferOwnersTest : public testing::Test {
 protected:
  uint32_t AddObject(const char* name, uint32_t owner, int32_t distance = 1) {
    HeapGraphTables& heap = trace_.heap_graph;
    const auto row = static_cast<uint32_t>(heap.objects.graph.size());
    heap.classes.push_back({.name = builder_.Intern(name)});
    heap.objects.graph.push_back(0);
    heap.objects.type.push_back(row);
    heap.objects.self_size.push_back(16);
    heap.objects.native_size.push_back(0);
    heap.objects.root_distance.push_back(owner == kHeldByARoot ? 0 : distance);
    heap.objects.root_type.push_back(owner == kHeldByARoot && distance >= 0
                                         ? HeapRootType::kJniGlobal
                                         : HeapRootType::kNone);
    heap.objects.heap_type.push_back(HeapType::kApp);
    if (distance < 0)
      heap.objects.root_distance[row] = distance;
    owners_.push_back(owner);
    return row;
  }

  void AddBuffer(uint32_t owner, uint64_t bytes, int32_t distance = 2) {
    const uint32_t object = AddObject("java.nio.DirectByteBuffer", owner, distance);
    trace_.heap_graph.direct_buffers.push_back(
        {.object = object, .address = 4096, .bytes = bytes});
  }

  // "A 2 100, B 1 7": owner, buffers, bytes.
  std::string Groups() {
    AddReferencesOfAll();
    const CancelFlag never = false;
    const Result<std::vector<BufferGroup>> groups = GroupBuffers(trace_, never);
    EXPECT_TRUE(groups.ok());
    std::string text;
    for (const BufferGroup& group : groups.value())
      text += (text.empty() ? "" : ", ") + group.owner + " " +
              std::to_string(group.buffers) + " " + std::to_string(group.bytes);
    return text;
  }

  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};

 private:
  void AddReferencesOfAll() {
    HeapGraphTables& heap = trace_.heap_graph;
    const auto objects = static_cast<uint32_t>(owners_.size());
    heap.graphs.push_back({.upid = builder_.processes().ProcessOf(1),
                           .ts = 5,
                           .first_object = 0,
                           .object_count = objects});
    for (uint32_t owner = 0; owner < objects; ++owner) {
      const auto first = static_cast<uint32_t>(heap.references.owner.size());
      for (uint32_t object = 0; object < objects; ++object) {
        if (owners_[object] != owner)
          continue;
        heap.references.owner.push_back(owner);
        heap.references.owned.push_back(object);
        heap.references.field_name.push_back(builder_.Intern("field"));
        heap.references.field_type_name.push_back(kEmptyString);
        heap.references.deobfuscated_field_name.push_back(kNoId);
      }
      const auto count = static_cast<uint32_t>(heap.references.owner.size()) - first;
      heap.objects.first_reference.push_back(count == 0 ? kNoId : first);
      heap.objects.reference_count.push_back(count);
    }
  }

  std::vector<uint32_t> owners_;
};

TEST_F(BufferOwnersTest, OwnersAreTheNearestThatAreNotOfJavaItself) {
  const uint32_t server = AddObject("Server", kHeldByARoot);
  const uint32_t pool = AddObject("Pool", server);
  const uint32_t list = AddObject("java.util.ArrayList", pool);
  const uint32_t array = AddObject("Buffer[]", list);
  AddBuffer(array, 100);
  AddBuffer(array, 50);
  AddBuffer(server, 30);
  EXPECT_EQ(Groups(), "Pool 2 150, Server 1 30");
}

TEST_F(BufferOwnersTest, WhatNoClassOfTheProgramHoldsHasAName) {
  const uint32_t list = AddObject("java.util.ArrayList", kHeldByARoot);
  const uint32_t statics = AddObject("java.lang.Class<Cache>", kHeldByARoot);
  AddBuffer(list, 50);
  AddBuffer(statics, 40);
  AddBuffer(kHeldByARoot, 30);
  AddBuffer(kHeldByARoot, 20, -1);
  EXPECT_EQ(Groups(),
            "java.util.ArrayList 1 50, Cache 1 40, several at once 1 30, "
            "nobody: they are garbage 1 20");
}

TEST_F(BufferOwnersTest, SizesHaveALimit) {
  const uint32_t pool = AddObject("Pool", kHeldByARoot);
  AddBuffer(pool, UINT64_MAX - 1);
  AddBuffer(pool, 100);
  EXPECT_EQ(Groups(), "Pool 2 18446744073709551615");
}

}  // namespace
}  // namespace heapprofd
