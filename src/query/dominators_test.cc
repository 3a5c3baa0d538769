#include "query/dominators.h"

#include <gtest/gtest.h>

#include <random>

#include "profile/model.h"

namespace heapprofd {
namespace {

DirectedGraph GraphOf(const std::vector<std::vector<uint32_t>>& edges) {
  DirectedGraph graph;
  for (const std::vector<uint32_t>& targets : edges) {
    graph.first.push_back(static_cast<uint32_t>(graph.targets.size()));
    graph.targets.insert(graph.targets.end(), targets.begin(), targets.end());
  }
  graph.first.push_back(static_cast<uint32_t>(graph.targets.size()));
  return graph;
}

std::vector<uint32_t> DominatorsOf(const std::vector<std::vector<uint32_t>>& edges) {
  const CancelFlag cancelled = false;
  Result<std::vector<uint32_t>> result = ImmediateDominators(GraphOf(edges), cancelled);
  EXPECT_TRUE(result.ok());
  return std::move(result).value();
}

// What can be reached from node 0 when `without` is taken away.
std::vector<bool> ReachableWithout(const std::vector<std::vector<uint32_t>>& edges,
                                   uint32_t without) {
  std::vector<bool> seen(edges.size(), false);
  std::vector<uint32_t> pending;
  if (without != 0)
    pending.push_back(0);
  while (!pending.empty()) {
    const uint32_t node = pending.back();
    pending.pop_back();
    if (seen[node])
      continue;
    seen[node] = true;
    for (const uint32_t target : edges[node]) {
      if (target != without)
        pending.push_back(target);
    }
  }
  return seen;
}

TEST(DominatorsTest, ADiamondIsDominatedByItsTop) {
  EXPECT_EQ(DominatorsOf({{1}, {2, 3}, {4}, {4}, {}}),
            (std::vector<uint32_t>{kNoId, 0, 1, 1, 1}));
}

TEST(DominatorsTest, WhatCannotBeReachedHasNone) {
  EXPECT_EQ(DominatorsOf({{1}, {}, {1}}), (std::vector<uint32_t>{kNoId, 0, kNoId}));
  EXPECT_TRUE(DominatorsOf({}).empty());
}

TEST(DominatorsTest, LongChainsNeedNoDeepRecursion) {
  std::vector<std::vector<uint32_t>> edges(200'000);
  for (uint32_t i = 0; i + 1 < edges.size(); ++i)
    edges[i] = {i + 1, 0};
  const std::vector<uint32_t> dominators = DominatorsOf(edges);
  EXPECT_EQ(dominators[199'999], 199'998u);
}

// Against the definition: d dominates n when n cannot be reached without d; the
// immediate dominator is the one that all others dominate.
TEST(DominatorsTest, RandomGraphsAgreeWithTheDefinition) {
  std::mt19937 random(301);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<uint32_t>> edges(random() % 12 + 1);
    for (std::vector<uint32_t>& targets : edges) {
      for (size_t i = random() % 4; i > 0; --i)
        targets.push_back(static_cast<uint32_t>(random() % edges.size()));
    }
    const auto count = static_cast<uint32_t>(edges.size());
    const std::vector<bool> reachable = ReachableWithout(edges, kNoId);
    std::vector<std::vector<bool>> without;
    for (uint32_t d = 0; d < count; ++d)
      without.push_back(ReachableWithout(edges, d));
    const auto dominates = [&](uint32_t d, uint32_t n) {
      return d == n || (reachable[n] && !without[d][n]);
    };
    std::vector<uint32_t> want(count, kNoId);
    for (uint32_t n = 1; n < count; ++n) {
      for (uint32_t d = 0; reachable[n] && d < count; ++d) {
        if (d == n || !dominates(d, n))
          continue;
        if (want[n] == kNoId || dominates(want[n], d))
          want[n] = d;
      }
    }
    EXPECT_EQ(DominatorsOf(edges), want) << "round " << round;
  }
}

}  // namespace
}  // namespace heapprofd
