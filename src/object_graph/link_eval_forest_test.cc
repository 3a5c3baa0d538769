// The forest against a model that walks every path as it was linked.
#include "object_graph/link_eval_forest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace heapprofd {
namespace {

TEST(LinkEvalForestTest, ARootIsItsOwn) {
  const std::vector<uint32_t> values = {5, 1};
  LinkEvalForest forest(values);
  EXPECT_EQ(forest.Evaluate(0), 0u);
  forest.Link(0, 1);
  EXPECT_EQ(forest.Evaluate(0), 0u);  // the root, which has less, is left out
  EXPECT_EQ(forest.Evaluate(1), 1u);
}

TEST(LinkEvalForestTest, ThePathIsThatOfAllLinksSoFar) {
  const std::vector<uint32_t> values = {9, 2, 7, 8};
  LinkEvalForest forest(values);
  forest.Link(3, 2);
  EXPECT_EQ(forest.Evaluate(3), 3u);
  forest.Link(2, 1);
  EXPECT_EQ(forest.Evaluate(3), 2u);
  forest.Link(1, 0);
  EXPECT_EQ(forest.Evaluate(3), 1u);
  EXPECT_EQ(forest.Evaluate(2), 1u);
}

TEST(LinkEvalForestTest, AnyForestHasTheLeastValuesOfTheModel) {
  constexpr uint32_t kNodes = 400;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<uint32_t> values;
    for (uint32_t node = 0; node < kNodes; ++node)
      values.push_back(static_cast<uint32_t>(random() % 100'000));
    std::vector<uint32_t> parents(kNodes, UINT32_MAX);
    LinkEvalForest forest(values);
    // As numbers of a search: parents have smaller ones, and are linked later.
    for (uint32_t node = kNodes; node-- > 1;) {
      parents[node] = static_cast<uint32_t>(random() % node);
      forest.Link(node, parents[node]);
      const auto asked = static_cast<uint32_t>(node + random() % (kNodes - node));
      uint32_t least = values[asked];
      for (uint32_t at = asked; parents[at] != UINT32_MAX; at = parents[at])
        least = std::min(least, values[at]);
      EXPECT_EQ(values[forest.Evaluate(asked)], least) << seed << " " << node;
    }
  }
}

}  // namespace
}  // namespace heapprofd
