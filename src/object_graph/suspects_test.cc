#include "object_graph/suspects.h"

#include <gtest/gtest.h>

#include <atomic>

namespace heapprofd {
namespace {

// Types are numbers; every object has one byte, but those with a size of their own.
struct Object {
  uint32_t type;
  std::vector<uint32_t> targets = {};
  uint64_t size = 1;
};

ObjectGraph GraphOf(const std::vector<Object>& objects,
                    const std::vector<uint32_t>& roots) {
  ObjectGraph graph(static_cast<uint32_t>(objects.size()));
  uint32_t types = 0;
  for (const Object& object : objects)
    types = std::max(types, object.type + 1);
  for (uint32_t type = 0; type < types; ++type)
    graph.AddType(std::to_string(type));
  for (const uint32_t root : roots)
    graph.AddRoot(root, 0);
  for (uint32_t i = 0; i < objects.size(); ++i) {
    graph.SetObject(i, objects[i].type, objects[i].size);
    for (const uint32_t target : objects[i].targets)
      graph.AddReference(target);
    graph.EndReferences(i);
  }
  return graph;
}

std::vector<Suspect> SuspectsIn(const std::vector<Object>& objects,
                                const std::vector<uint32_t>& roots,
                                uint64_t least) {
  const ObjectGraph graph = GraphOf(objects, roots);
  const Result<Retention> tree = FindRetention(graph, std::atomic<bool>(false));
  EXPECT_TRUE(tree.ok());
  std::vector<Suspect> suspects = FindSuspects(graph, tree.value(), least);
  for (const Suspect& suspect : suspects) {
    uint64_t bytes = 0;
    for (const SuspectPart& part : suspect.parts)
      bytes += part.bytes;
    EXPECT_EQ(bytes, suspect.retained);
  }
  return suspects;
}

std::vector<uint32_t> ObjectsOf(const std::vector<Suspect>& suspects) {
  std::vector<uint32_t> objects;
  for (const Suspect& suspect : suspects)
    objects.push_back(suspect.object);
  return objects;
}

TEST(SuspectsTest, TheLastLargeOneOnTheWayDownIsIt) {
  // A class, its list, the list's array, and what that holds.
  const auto suspects =
      SuspectsIn({{0, {1}}, {1, {2}}, {2, {3, 4, 5}}, {3}, {3}, {3}}, {0}, 4);
  ASSERT_EQ(ObjectsOf(suspects), (std::vector<uint32_t>{2}));
  EXPECT_EQ(suspects[0].retained, 4u);
  EXPECT_EQ(suspects[0].count, 1u);
  ASSERT_EQ(suspects[0].parts.size(), 2u);
  EXPECT_EQ(suspects[0].parts[0].type, 3u);
  EXPECT_EQ(suspects[0].parts[0].objects, 3u);
  EXPECT_EQ(suspects[0].parts[0].bytes, 3u);
}

TEST(SuspectsTest, OfAListItIsTheFirst) {
  EXPECT_EQ(ObjectsOf(SuspectsIn({{0, {1}}, {1, {2}}, {1, {3}}, {1, {4}}, {1}}, {0}, 2)),
            (std::vector<uint32_t>{1}));
}

TEST(SuspectsTest, AListThatIsOnlyTheWayToSomethingLargeIsNone) {
  EXPECT_EQ(ObjectsOf(SuspectsIn({{0, {1}}, {1, {2}}, {1, {3}}, {2, {}, 10}}, {0}, 5)),
            (std::vector<uint32_t>{3}));
}

TEST(SuspectsTest, TwoPilesInOneObjectAreTwo) {
  EXPECT_EQ(ObjectsOf(SuspectsIn({{0, {1, 2}}, {1, {}, 10}, {2, {}, 20}}, {0}, 5)),
            (std::vector<uint32_t>{2, 1}));
}

TEST(SuspectsTest, ManyOfOneTypeThatNothingHoldsAreOne) {
  const auto suspects =
      SuspectsIn({{0, {3}}, {0, {4}}, {0, {5}}, {1, {}, 2}, {1, {}, 3}, {1, {}, 2}, {2}},
                 {0, 1, 2, 6}, 5);
  ASSERT_EQ(ObjectsOf(suspects), (std::vector<uint32_t>{1}));
  EXPECT_EQ(suspects[0].count, 3u);
  EXPECT_EQ(suspects[0].retained, 10u);
  EXPECT_EQ(suspects[0].parts[0].type, 1u);
  EXPECT_EQ(suspects[0].parts[0].bytes, 7u);
}

TEST(SuspectsTest, GarbageIsNone) {
  EXPECT_TRUE(SuspectsIn({{0}, {1, {}, 100}}, {0}, 5).empty());
  EXPECT_TRUE(SuspectsIn({}, {}, 1).empty());
}

// From the objects on; 0 is a root.
std::vector<std::vector<uint32_t>> WaysIn(const std::vector<Object>& heap,
                                          const std::vector<uint32_t>& objects) {
  const ObjectGraph graph = GraphOf(heap, {0});
  const Result<Retention> tree = FindRetention(graph, std::atomic<bool>(false));
  EXPECT_TRUE(tree.ok());
  return WaysDown(graph, tree.value(), objects);
}

using Ways = std::vector<std::vector<uint32_t>>;

TEST(SuspectsTest, AWayDownEndsWhereItSpreads) {
  const std::vector<Object> heap = {{0, {1, 2}}, {1, {3}},    {2},
                                    {3, {4, 5}}, {4, {}, 10}, {4, {}, 10}};
  EXPECT_EQ(WaysIn(heap, {0}), (Ways{{0, 1, 3}}));
  EXPECT_EQ(WaysIn(heap, {2, 3}), (Ways{{2}, {3}}));
  EXPECT_EQ(WaysIn(heap, {0, 3}), (Ways{{0, 1}, {3}}));
  EXPECT_EQ(WaysIn(heap, {}), Ways());
}

TEST(SuspectsTest, AWayDownHasTheFirstOfAListAndIsNoLongList) {
  std::vector<Object> list = {{0, {1}}};
  std::vector<Object> alternating = list;
  for (uint32_t i = 1; i < 1000; ++i) {
    const std::vector<uint32_t> next =
        i < 999 ? std::vector{i + 1} : std::vector<uint32_t>();
    list.push_back({1, next});
    alternating.push_back({i % 2 + 1, next});
  }
  EXPECT_EQ(WaysIn(list, {0}), (Ways{{0, 1}}));
  EXPECT_EQ(WaysIn(alternating, {0})[0].size(), kLongestWay);
}

TEST(SuspectsTest, ThereIsAnEndToThem) {
  std::vector<Object> objects(1000);
  for (uint32_t i = 0; i < objects.size(); ++i)
    objects[i] = {i};
  std::vector<uint32_t> roots(objects.size());
  for (uint32_t i = 0; i < roots.size(); ++i)
    roots[i] = i;
  EXPECT_EQ(SuspectsIn(objects, roots, 1).size(), kMostSuspects);
}

}  // namespace
}  // namespace heapprofd
