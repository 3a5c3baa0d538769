#include "engine/idle/chosen_blocks.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/page_size.h"
#include "profile/estimate.h"

namespace heapprofd {
namespace {

constexpr uint64_t kForever = ~uint64_t{0};
constexpr uint64_t kSecret = 301;

SampledAllocation Sampled(uint64_t address, uint64_t size, uint64_t interval = 1) {
  return {.address = address, .size = size, .interval = interval, .callsite = 1};
}

ChosenBlocks ChosenOf(const LiveHeap& heap) {
  ChosenBlocks blocks(heap, kSecret);
  EXPECT_TRUE(blocks.Choose(heap, /*now_ns=*/1'000'000, kForever));
  return blocks;
}

double BytesOf(const ChosenBlocks& blocks) {
  double bytes = 0;
  for (const ChosenBlock& block : blocks.blocks())
    bytes += block.bytes;
  return bytes;
}

TEST(ChosenBlocksTest, AllOfAFewAreChosenInOrder) {
  LiveHeap heap(1);
  heap.Allocate(Sampled(9000, 100), 1);
  heap.Allocate(Sampled(4096, 4500), 1);
  heap.Allocate(Sampled(20'000, 10, 4096), 1);
  const ChosenBlocks chosen = ChosenOf(heap);
  ASSERT_EQ(chosen.blocks().size(), 3u);
  EXPECT_EQ(chosen.blocks()[0].address, 4096u);
  EXPECT_EQ(chosen.blocks()[0].size, 4500u);
  EXPECT_DOUBLE_EQ(chosen.blocks()[2].bytes, EstimateOfSample(10, 4096).bytes);
  EXPECT_EQ(chosen.left_out_bytes(), 0);
  const uint64_t page = PageSize();
  EXPECT_EQ(chosen.Pages(),
            (std::vector<uint64_t>{4096 / page, 9000 / page, 20'000 / page}));
}

TEST(ChosenBlocksTest, AChoiceOfManyStandsForAllOfThem) {
  LiveHeap heap(1);
  std::mt19937_64 random(301);
  for (uint64_t i = 1; i <= 500'000; ++i)
    heap.Allocate(Sampled(i * 100'000, i % 1000 == 0 ? 90'000 : random() % 200 + 1, 64),
                  1);
  const ChosenBlocks chosen = ChosenOf(heap);
  EXPECT_LT(chosen.blocks().size(), ChosenBlocks::kMax);
  EXPECT_GT(chosen.blocks().size(), ChosenBlocks::kMax / 8);
  EXPECT_NEAR(BytesOf(chosen), heap.total().live().bytes,
              0.02 * heap.total().live().bytes);
}

TEST(ChosenBlocksTest, TheNextChoiceHasTheSameBlocks) {
  LiveHeap heap(1);
  for (uint64_t i = 1; i <= 200'000; ++i)
    heap.Allocate(Sampled(i * 4096, 100), 1);
  const ChosenBlocks first = ChosenOf(heap);
  for (uint64_t i = 1; i <= 200'000; i += 100)
    heap.Free(i * 4096);
  const ChosenBlocks next = ChosenOf(heap);
  size_t at = 0;
  for (const ChosenBlock& block : next.blocks()) {
    while (at < first.blocks().size() && first.blocks()[at].address < block.address)
      ++at;
    ASSERT_LT(at, first.blocks().size());
    ASSERT_EQ(first.blocks()[at].address, block.address);
  }
}

TEST(ChosenBlocksTest, BlocksThatOverlapAreLeftOut) {
  LiveHeap heap(1);
  heap.Allocate(Sampled(4096, 1000), 1);
  heap.Allocate(Sampled(5000, 1000), 1);
  heap.Allocate(Sampled(5096, 1000), 1);
  const ChosenBlocks chosen = ChosenOf(heap);
  EXPECT_EQ(chosen.blocks().size(), 2u);
  EXPECT_DOUBLE_EQ(chosen.left_out_bytes(), 1000);
}

TEST(ChosenBlocksTest, NoAddressNorSizeMakesItTakeLong) {
  LiveHeap heap(1);
  for (uint64_t i = 1; i <= 200'000; ++i)
    heap.Allocate(Sampled(i * 16, uint64_t{1} << 56), 1);
  heap.Allocate(Sampled(~uint64_t{0}, 10), 1);
  heap.Allocate(Sampled(~uint64_t{0} - 5, 10), 1);
  const ChosenBlocks chosen = ChosenOf(heap);
  EXPECT_LE(chosen.blocks().size(), 3u);
  EXPECT_EQ(chosen.Pages().size(), ChosenBlocks::kMaxPages);
}

TEST(ChosenBlocksTest, ItGoesOnWhereTheTimeWasOver) {
  LiveHeap heap(1);
  for (uint64_t i = 1; i <= 20'000; ++i)
    heap.Allocate(Sampled(i * 4096, 100), 1);
  ChosenBlocks blocks(heap, kSecret);
  size_t turns = 1;
  while (!blocks.Choose(heap, 1, /*end_ns=*/0))
    ++turns;
  EXPECT_GT(turns, 4u);
  EXPECT_EQ(blocks.blocks().size(), 20'000u);
}

}  // namespace
}  // namespace heapprofd
