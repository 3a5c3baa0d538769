#include "engine/stacks/known_stacks.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(KnownStacksTest, WhatIsForgottenIsStillMeantByRecordsOnTheirWay) {
  KnownStacks stacks;
  stacks.Insert(7, 70);
  ASSERT_NE(stacks.Find(7), nullptr);
  EXPECT_EQ(*stacks.Find(7), 70u);
  EXPECT_EQ(stacks.FindForgotten(7), nullptr);
  stacks.Forget(/*position=*/100, /*end=*/200);
  EXPECT_EQ(stacks.Find(7), nullptr);
  ASSERT_NE(stacks.FindForgotten(7), nullptr);
  EXPECT_EQ(*stacks.FindForgotten(7), 70u);
}

TEST(KnownStacksTest, AllThatRecordsOnTheirWayMayMeanIsKeptHoweverOftenItIsForgotten) {
  KnownStacks stacks;
  stacks.Insert(7, 70);
  stacks.Forget(/*position=*/100, /*end=*/200);
  stacks.Insert(7, 71);  // a record before 200 that brings it means the former
  stacks.Insert(8, 80);
  stacks.Forget(/*position=*/199, /*end=*/300);
  EXPECT_EQ(*stacks.FindForgotten(7), 70u);
  EXPECT_EQ(*stacks.FindForgotten(8), 80u);
  stacks.Insert(9, 90);
  stacks.Forget(/*position=*/300, /*end=*/300);
  EXPECT_EQ(stacks.FindForgotten(7), nullptr);
  EXPECT_EQ(stacks.FindForgotten(8), nullptr);
  EXPECT_EQ(*stacks.FindForgotten(9), 90u);
}

TEST(KnownStacksTest, WhatIsForgottenCostsMemoryUntilItIsReplaced) {
  KnownStacks stacks;
  EXPECT_EQ(stacks.bytes(), 0u);
  for (uint32_t i = 1; i < 1000; ++i)
    stacks.Insert(i, i);
  const size_t full = stacks.bytes();
  EXPECT_GT(full, 0u);
  stacks.Forget(0, 0);
  EXPECT_EQ(stacks.bytes(), full);
  stacks.Forget(0, 0);
  EXPECT_EQ(stacks.bytes(), 0u);
}

}  // namespace
}  // namespace heapprofd
