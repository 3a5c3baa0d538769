#include "object_graph/dominators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "object_graph/paths.h"
#include "object_graph/retention.h"

namespace heapprofd {
namespace {

// A graph as lists, and what the definitions say of it.
struct Model {
  std::vector<std::vector<uint32_t>> targets;
  std::vector<uint32_t> roots;
  std::vector<uint32_t> types;         // by object
  std::vector<uint32_t> type_objects;  // by type
  std::vector<uint64_t> sizes;

  ObjectGraph Graph() const {
    ObjectGraph graph(static_cast<uint32_t>(targets.size()));
    for (const uint32_t object : type_objects)
      graph.AddType("type", object);
    for (const uint32_t root : roots)
      graph.AddRoot(root, 0);
    for (uint32_t i = 0; i < targets.size(); ++i) {
      graph.SetObject(i, types[i], sizes[i]);
      for (const uint32_t target : targets[i])
        graph.AddReference(target);
      graph.EndReferences(i);
    }
    return graph;
  }

  // What can be reached when `without` is taken away.
  std::vector<bool> Reachable(uint32_t without = kNoObject) const {
    std::vector<bool> seen(targets.size(), false);
    std::vector<uint32_t> pending = roots;
    while (!pending.empty()) {
      const uint32_t object = pending.back();
      pending.pop_back();
      if (object == without || object == kNoObject || seen[object])
        continue;
      seen[object] = true;
      pending.insert(pending.end(), targets[object].begin(), targets[object].end());
      pending.push_back(type_objects[types[object]]);
    }
    return seen;
  }

  // By object: what becomes unreachable without it.
  std::vector<uint64_t> Retained() const {
    const std::vector<bool> all = Reachable();
    std::vector<uint64_t> result(targets.size(), 0);
    for (uint32_t i = 0; i < targets.size(); ++i) {
      const std::vector<bool> left = Reachable(i);
      for (uint32_t other = 0; other < targets.size(); ++other) {
        if (all[other] && !left[other])
          result[i] += sizes[other];
      }
    }
    return result;
  }

  // d dominates n when n cannot be reached without d; the immediate dominator is the one
  // that all others dominate.
  std::vector<uint32_t> Dominators() const {
    const std::vector<bool> all = Reachable();
    const auto count = static_cast<uint32_t>(targets.size());
    std::vector<std::vector<bool>> without;
    for (uint32_t d = 0; d < count; ++d)
      without.push_back(Reachable(d));
    std::vector<uint32_t> result(count, kUnreachable);
    for (uint32_t n = 0; n < count; ++n) {
      if (!all[n])
        continue;
      result[n] = kHeldByRoots;
      for (uint32_t d = 0; d < count; ++d) {
        if (d != n && all[d] && !without[d][n] &&
            (result[n] == kHeldByRoots || !without[result[n]][d]))
          result[n] = d;
      }
    }
    return result;
  }
};

Model ModelOf(std::vector<std::vector<uint32_t>> targets, std::vector<uint32_t> roots) {
  Model model;
  model.types.resize(targets.size(), 0);
  model.sizes.resize(targets.size(), 1);
  model.type_objects = {kNoObject};
  model.targets = std::move(targets);
  model.roots = std::move(roots);
  return model;
}

DominatorTree TreeOf(const ObjectGraph& graph) {
  Result<DominatorTree> tree = FindDominators(graph, std::atomic<bool>(false));
  EXPECT_TRUE(tree.ok());
  return std::move(tree).value();
}

std::vector<uint32_t> DominatorsOf(const Model& model) {
  const DominatorTree tree = TreeOf(model.Graph());
  return {tree.dominator.begin(), tree.dominator.end()};
}

TEST(DominatorsTest, ADiamondIsDominatedByItsTop) {
  EXPECT_EQ(DominatorsOf(ModelOf({{1, 2}, {3}, {3}, {}}, {0})),
            (std::vector<uint32_t>{kHeldByRoots, 0, 0, 0}));
}

TEST(DominatorsTest, WhatCannotBeReachedHasNone) {
  EXPECT_EQ(DominatorsOf(ModelOf({{}, {0}}, {0})),
            (std::vector<uint32_t>{kHeldByRoots, kUnreachable}));
  EXPECT_TRUE(DominatorsOf(ModelOf({}, {})).empty());
  EXPECT_EQ(DominatorsOf(ModelOf({{0}}, {})), (std::vector<uint32_t>{kUnreachable}));
}

TEST(DominatorsTest, WhatTwoRootsHoldIsHeldByNeither) {
  EXPECT_EQ(DominatorsOf(ModelOf({{2}, {2}, {3}, {}}, {0, 1})),
            (std::vector<uint32_t>{kHeldByRoots, kHeldByRoots, kHeldByRoots, 2}));
}

TEST(DominatorsTest, LongChainsNeedNoDeepRecursion) {
  std::vector<std::vector<uint32_t>> targets(200'000);
  for (uint32_t i = 0; i + 1 < targets.size(); ++i)
    targets[i] = {i + 1, 0};
  const Model model = ModelOf(std::move(targets), {0});
  EXPECT_EQ(DominatorsOf(model)[199'999], 199'998u);
  EXPECT_EQ(NearestPaths(model.Graph(), {199'999})[0].size(), 200'000u);
}

TEST(DominatorsTest, ACancelledSearchSaysSo) {
  std::vector<std::vector<uint32_t>> chain(100'000);
  for (uint32_t i = 0; i + 1 < chain.size(); ++i)
    chain[i] = {i + 1};
  EXPECT_EQ(
      FindDominators(ModelOf(std::move(chain), {0}).Graph(), std::atomic<bool>(true))
          .status()
          .message(),
      "cannot find what retains memory: it was cancelled");
}

TEST(DominatorsTest, SizesOfMoreThan32BitsAreKept) {
  Model model = ModelOf({{1}, {}}, {0});
  model.sizes = {8, uint64_t{5} << 32};
  const ObjectGraph graph = model.Graph();
  EXPECT_EQ(RetainedSizes(graph, TreeOf(graph))[0], (uint64_t{5} << 32) + 8);
}

// Some objects stand for types; leaves are frequent, as they are in heaps.
Model RandomModel(std::mt19937& random) {
  const auto count = static_cast<uint32_t>(random() % 14 + 1);
  Model model = ModelOf(std::vector<std::vector<uint32_t>>(count), {});
  for (size_t i = random() % 3 + 1; i > 0; --i)
    model.roots.push_back(static_cast<uint32_t>(random() % count));
  model.type_objects.push_back(static_cast<uint32_t>(random() % count));
  model.type_objects.push_back(model.roots[0]);
  for (uint32_t i = 0; i < count; ++i) {
    model.types[i] = static_cast<uint32_t>(random() % 4 % 3);
    model.sizes[i] = random() % 100;
    for (size_t left = random() % 2 * (random() % 4); left > 0; --left)
      model.targets[i].push_back(static_cast<uint32_t>(random() % count));
  }
  return model;
}

TEST(DominatorsTest, RandomGraphsAgreeWithTheDefinitions) {
  std::mt19937 random(301);
  for (int round = 0; round < 1000; ++round) {
    const Model model = RandomModel(random);
    const ObjectGraph graph = model.Graph();
    const DominatorTree tree = TreeOf(graph);
    EXPECT_EQ(std::vector<uint32_t>(tree.dominator.begin(), tree.dominator.end()),
              model.Dominators())
        << "round " << round;
    const Column<uint64_t> retained = RetainedSizes(graph, tree);
    const std::vector<uint64_t> want = model.Retained();
    EXPECT_EQ(std::vector<uint64_t>(retained.begin(), retained.end()), want)
        << "round " << round;
    std::vector<uint32_t> group_of;  // some types share one
    for (size_t type = 0; type < model.type_objects.size(); ++type)
      group_of.push_back(static_cast<uint32_t>(random() % model.type_objects.size()));
    const auto group = [&](uint32_t object) { return group_of[model.types[object]]; };
    std::vector<uint64_t> by_group(group_of.size(), 0);
    for (uint32_t i = 0; i < model.targets.size(); ++i) {
      if (tree.dominator[i] == kUnreachable)
        continue;
      uint32_t above = tree.dominator[i];
      while (above != kHeldByRoots && group(above) != group(i))
        above = tree.dominator[above];
      by_group[group(i)] += above == kHeldByRoots ? want[i] : 0;
    }
    EXPECT_EQ(RetainedByGroup(graph, Retention(graph, TreeOf(graph)), group_of), by_group)
        << "round " << round;
  }
}

TEST(DominatorsTest, EveryObjectComesBehindItsDominator) {
  std::mt19937 random(302);
  for (int round = 0; round < 100; ++round) {
    const DominatorTree tree = TreeOf(RandomModel(random).Graph());
    std::vector<bool> seen(tree.dominator.size(), false);
    for (const uint32_t object : tree.order) {
      EXPECT_FALSE(seen[object]);
      EXPECT_TRUE(tree.dominator[object] == kHeldByRoots || seen[tree.dominator[object]]);
      seen[object] = true;
    }
    for (uint32_t i = 0; i < seen.size(); ++i)
      EXPECT_EQ(seen[i], tree.dominator[i] != kUnreachable);
  }
}

TEST(PathsTest, TheNearestOneIsFound) {
  const ObjectGraph graph = ModelOf({{1}, {2}, {3}, {}, {3}, {}}, {0, 4}).Graph();
  EXPECT_EQ(NearestPaths(graph, {3})[0], (std::vector<uint32_t>{4, 3}));
  EXPECT_EQ(NearestPaths(graph, {2})[0], (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(NearestPaths(graph, {4})[0], (std::vector<uint32_t>{4}));
  EXPECT_TRUE(NearestPaths(graph, {5})[0].empty());
}

using Groups = std::vector<uint32_t>;  // from the root on, each other than the one before
using Sums = std::map<Groups, std::pair<uint64_t, uint64_t>>;  // objects, bytes

Sums SumsOfMerged(const std::vector<MergedWay>& ways) {
  Sums sums;
  std::vector<Groups> groups;
  for (const MergedWay& way : ways) {
    Groups own = way.above == MergedWay::kTop ? Groups() : groups[way.above];
    own.push_back(way.group);
    EXPECT_TRUE(sums.emplace(own, std::pair(way.objects, way.bytes)).second);
    groups.push_back(std::move(own));
  }
  return sums;
}

TEST(PathsTest, MergedWaysAreThoseOfEachObject) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const Model model = RandomModel(random);
    const ObjectGraph graph = model.Graph();
    const auto is_wanted = [](uint32_t object) { return object % 3 == 0; };
    const auto group_of = [](uint32_t object) { return object % 4 / 2; };
    Sums expected;
    for (uint32_t object = 0; object < graph.object_count(); object += 3) {
      const ObjectPath path = NearestPaths(graph, {object})[0];
      Groups groups;
      for (const uint32_t step : path) {
        if (!groups.empty() && groups.back() == group_of(step))
          continue;
        groups.push_back(group_of(step));
        ++expected[groups].first;
        expected[groups].second += model.sizes[object];
      }
    }
    EXPECT_EQ(SumsOfMerged(MergeNearestPaths(graph, is_wanted, group_of).ways), expected);
  }
}

}  // namespace
}  // namespace heapprofd
