#include "profile/block_shapes.h"

#include <gtest/gtest.h>

#include <span>

namespace heapprofd {
namespace {

constexpr Estimate kOne{
    .bytes = 100, .count = 1, .bytes_variance = 9, .count_variance = 2};

std::vector<ShapeRow> RowsOf(const BlockShapes& shapes) {
  std::vector<ShapeRow> rows;
  shapes.AppendTo(&rows);
  SortShapes(&rows);
  return rows;
}

TEST(BlockShapesTest, SumsAreByPowersOfTwo) {
  BlockShapes shapes;
  for (const uint64_t size : {0u, 1u, 2u, 3u, 4u, 1023u, 1024u})
    shapes.Allocate({7}, size, kOne);
  const std::vector<ShapeRow> rows = RowsOf(shapes);
  ASSERT_EQ(rows.size(), 5u);
  const std::vector<std::pair<uint8_t, double>> expected = {
      {0, 2}, {1, 2}, {2, 1}, {9, 1}, {10, 1}};
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].callsite, 7u);
    EXPECT_EQ(rows[i].kind, ShapeKind::kAllocatedSize);
    EXPECT_EQ(rows[i].log2, expected[i].first);
    EXPECT_EQ(rows[i].estimate.count, expected[i].second);
    EXPECT_EQ(rows[i].estimate.bytes_variance, 9 * expected[i].second);
  }
}

TEST(BlockShapesTest, TheLargestSizeAndTheLongestTimeHaveTheirPlaces) {
  BlockShapes shapes;
  shapes.Allocate({0}, uint64_t{1} << 56, kOne);
  shapes.AddLive({UINT32_MAX}, 1, UINT64_MAX, kOne);
  const std::vector<ShapeRow> rows = RowsOf(shapes);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].log2, 56);
  EXPECT_EQ(rows[2].callsite, UINT32_MAX);
  EXPECT_EQ(rows[2].kind, ShapeKind::kAge);
  EXPECT_EQ(rows[2].log2, 63);
}

TEST(BlockShapesTest, WhatDidNotEndIsTakenBack) {
  BlockShapes shapes;
  const BlockShapes::End end{.lived_ns = 500, .is_temporary = true};
  shapes.Free(1, end, kOne, 1);
  shapes.Free(1, end, kOne, 1);
  shapes.Free(1, end, kOne, -1);
  std::vector<ShapeRow> rows = RowsOf(shapes);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].kind, ShapeKind::kLifetime);
  EXPECT_EQ(rows[0].log2, 8);
  EXPECT_EQ(rows[0].estimate.count, 1);
  EXPECT_EQ(rows[1].kind, ShapeKind::kTemporary);
  EXPECT_EQ(rows[1].estimate.bytes_variance, 9);
  shapes.Free(1, end, kOne, -1);
  EXPECT_TRUE(RowsOf(shapes).empty());
}

TEST(BlockShapesTest, AnEndThatNobodySawIsNoLifetime) {
  BlockShapes shapes;
  shapes.Free(1, {}, kOne, 1);
  EXPECT_TRUE(RowsOf(shapes).empty());
}

TEST(BlockShapesTest, WhatHasNoRoomIsTheHeapsAloneAndCounted) {
  BlockShapes shapes;
  CallsiteId callsite = 0;
  while (shapes.left_out() == 0)
    shapes.Allocate({callsite++}, 1, kOne);
  shapes.Allocate({0}, 1, kOne);
  EXPECT_EQ(shapes.left_out(), 1u);
  shapes.Allocate({callsite}, 1, kOne);
  shapes.Free(callsite, {.lived_ns = 500, .is_temporary = true}, kOne, 1);
  shapes.Free(callsite, {.lived_ns = 500, .is_temporary = true}, kOne, 1);
  shapes.Free(callsite, {.lived_ns = 500, .is_temporary = true}, kOne, -1);
  EXPECT_EQ(shapes.left_out(), 8u);
  const std::vector<ShapeRow> rows = RowsOf(shapes);
  ASSERT_EQ(rows.size(), callsite + 2u);
  const std::span<const ShapeRow> last = std::span(rows).last(4);
  EXPECT_EQ(last[0].callsite, callsite - 2);
  EXPECT_EQ(last[1].callsite, kNoId);
  EXPECT_EQ(last[1].kind, ShapeKind::kAllocatedSize);
  EXPECT_EQ(last[1].estimate.count, 2);
  EXPECT_EQ(last[1].estimate.bytes_variance, 18);
  EXPECT_EQ(last[2].kind, ShapeKind::kLifetime);
  EXPECT_EQ(last[2].estimate.count, 1);
  EXPECT_EQ(last[3].kind, ShapeKind::kTemporary);
  EXPECT_EQ(last[3].estimate.count, 1);
  EXPECT_LT(shapes.bytes(), 32u << 20);
}

TEST(BlockShapesTest, SizesAreThoseOfThreads) {
  BlockShapes shapes;
  for (const ThreadId thread : {16'383u, 2u, 2u})
    shapes.Allocate({.callsite = 1, .thread = thread}, 8, kOne);
  shapes.AddLive({.callsite = 1, .thread = 2}, 8, 500, kOne);
  const std::vector<ShapeRow> rows = RowsOf(shapes);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].thread, 2u);
  EXPECT_EQ(rows[0].log2, 3);
  EXPECT_EQ(rows[0].estimate.count, 2);
  EXPECT_EQ(rows[1].thread, 16'383u);
  EXPECT_EQ(rows[2].kind, ShapeKind::kLiveSize);
  EXPECT_EQ(rows[2].thread, 2u);
  EXPECT_EQ(rows[3].kind, ShapeKind::kAge);
  EXPECT_EQ(rows[3].thread, kUnknownThread);
}

TEST(BlockShapesTest, ThreadsTakeNoRoomFromCallsites) {
  BlockShapes shapes;
  CallsiteId callsite = 0;
  while (shapes.left_out() == 0)
    shapes.Allocate({callsite++}, 1, kOne);
  const CallsiteId room = callsite;
  shapes = BlockShapes();
  for (ThreadId thread = 1; thread <= 16'000; ++thread) {
    for (callsite = 0; callsite < 10; ++callsite)
      shapes.Allocate({callsite, thread}, 1, kOne);
  }
  for (callsite = 10; shapes.left_out() == 0;)
    shapes.Allocate({callsite++}, 1, kOne);
  EXPECT_EQ(callsite, room);
  EXPECT_LT(shapes.bytes(), 32u << 20);
}

TEST(BlockShapesTest, OfTooManyThreadsTheCallsitesStayWhole) {
  BlockShapes shapes;
  constexpr CallsiteId kCallsites = 100;
  constexpr ThreadId kThreads = 4000;
  for (ThreadId thread = 1; thread <= kThreads; ++thread) {
    for (CallsiteId callsite = 0; callsite < kCallsites; ++callsite)
      shapes.Allocate({callsite, thread}, 1, kOne);
  }
  EXPECT_EQ(shapes.left_out(), 0u);
  double of_first = 0;
  double without_thread = 0;
  for (const ShapeRow& row : RowsOf(shapes)) {
    if (row.callsite == 0)
      of_first += row.estimate.count;
    if (row.callsite == 0 && row.thread == kUnknownThread)
      without_thread = row.estimate.count;
  }
  EXPECT_EQ(of_first, kThreads);
  EXPECT_GT(without_thread, kThreads / 2);
  EXPECT_LT(without_thread, kThreads);
}

}  // namespace
}  // namespace heapprofd
