#include "engine/heap_selection.h"

#include <gtest/gtest.h>

#include <memory>

namespace heapprofd {
namespace {

class HeapSelectionTest : public testing::Test {
 protected:
  uint64_t IntervalOf(const HeapSelection& selection, const char* name) {
    rules_ = std::make_unique<HeapRules>();
    FillHeapRules(selection, 4096, rules_.get());
    return HeapIntervalByName(*rules_, name);
  }

  std::unique_ptr<HeapRules> rules_ = std::make_unique<HeapRules>();
};

TEST_F(HeapSelectionTest, WithoutAWishOnlyMallocIsRecorded) {
  EXPECT_EQ(IntervalOf({}, "libc.malloc"), 4096u);
  EXPECT_EQ(IntervalOf({}, "pool"), 0u);
}

TEST_F(HeapSelectionTest, NamedHeapsHaveTheirOwnIntervalsAndPushMallocOut) {
  const HeapSelection selection{
      .heaps = {{"pool", 1}, {"arena", 0}}, .excluded = {}, .all = false};
  EXPECT_EQ(IntervalOf(selection, "pool"), 1u);
  EXPECT_EQ(IntervalOf(selection, "arena"), 4096u);
  EXPECT_EQ(IntervalOf(selection, "libc.malloc"), 0u);
  EXPECT_EQ(IntervalOf(selection, "poo"), 0u);
  EXPECT_EQ(IntervalOf(selection, "pool2"), 0u);
}

TEST_F(HeapSelectionTest, AllMeansAllButTheExcludedOnes) {
  const HeapSelection selection{
      .heaps = {{"pool", 1}}, .excluded = {"arena"}, .all = true};
  EXPECT_EQ(IntervalOf(selection, "libc.malloc"), 4096u);
  EXPECT_EQ(IntervalOf(selection, "other"), 4096u);
  EXPECT_EQ(IntervalOf(selection, "pool"), 1u);
  EXPECT_EQ(IntervalOf(selection, "arena"), 0u);
}

TEST_F(HeapSelectionTest, MallocIsRecordedWhereItsIntervalSaysSo) {
  const HeapSelection selections[] = {
      {},
      {.heaps = {{"pool", 1}}, .excluded = {}},
      {.heaps = {{"pool", 1}, {"libc.malloc", 0}}, .excluded = {"libc.malloc"}},
      {.heaps = {}, .excluded = {"libc.malloc"}},
      {.heaps = {}, .excluded = {"libc.malloc"}, .all = true},
      {.heaps = {{"pool", 1}}, .excluded = {}, .all = true}};
  for (const HeapSelection& selection : selections)
    EXPECT_EQ(selection.HasMalloc(), IntervalOf(selection, "libc.malloc") != 0);
}

TEST_F(HeapSelectionTest, WhatTheRulesCannotHoldIsRefused) {
  EXPECT_TRUE(CheckHeapSelection({}).ok());
  const std::string longest(63, 'x');
  EXPECT_TRUE(CheckHeapSelection({.heaps = {{longest, 0}}, .excluded = {}}).ok());
  EXPECT_FALSE(CheckHeapSelection({.heaps = {{longest + "x", 0}}, .excluded = {}}).ok());
  EXPECT_FALSE(CheckHeapSelection({.heaps = {}, .excluded = {""}}).ok());
  HeapSelection many;
  many.excluded.assign(kMaxHeapRules, "x");
  EXPECT_TRUE(CheckHeapSelection(many).ok());
  many.heaps.push_back({"y", 0});
  EXPECT_FALSE(CheckHeapSelection(many).ok());
}

TEST_F(HeapSelectionTest, ANameOfFullLengthIsFound) {
  const std::string longest(63, 'x');
  EXPECT_EQ(IntervalOf({.heaps = {{longest, 7}}, .excluded = {}}, longest.c_str()), 7u);
}

}  // namespace
}  // namespace heapprofd
