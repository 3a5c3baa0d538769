#include "tables/decode_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "import/perfetto/test_traces.h"

namespace heapprofd {
namespace {

// Read, but not yet decoded; or some of it, meanwhile.
std::unique_ptr<TestTrace> ReadDeferred(const std::string& fixture,
                                        bool begins_meanwhile = false) {
  auto test = std::make_unique<TestTrace>();
  test->builder.DeferDecoding();
  if (begins_meanwhile)
    test->builder.decoding().BeginMeanwhile();
  const std::string bytes = FixtureBytes(fixture);
  MemorySource source(bytes);
  EXPECT_TRUE(ReadTrace(source, fixture, test->builder).ok());
  return test;
}

class DecodingTest : public testing::TestWithParam<const char*> {
 protected:
  void ExpectTheTablesOfAtOnce(TestTrace& deferred) const;
};

void DecodingTest::ExpectTheTablesOfAtOnce(TestTrace& deferred) const {
  const auto want = ReadFixture(GetParam());
  TestTrace* const got = &deferred;
  got->builder.decoding().Run();
  EXPECT_EQ(got->Allocations(), want->Allocations());
  ASSERT_EQ(got->trace.callsites.row_count(), want->trace.callsites.row_count());
  for (uint32_t row = 0; row < want->trace.callsites.row_count(); ++row)
    EXPECT_EQ(got->Stack(row), want->Stack(row));
  ASSERT_EQ(got->trace.dumps.size(), want->trace.dumps.size());
  for (size_t dump = 0; dump < want->trace.dumps.size(); ++dump) {
    EXPECT_EQ(got->trace.dumps[dump].first_allocation,
              want->trace.dumps[dump].first_allocation);
    EXPECT_EQ(got->trace.dumps[dump].is_peak, want->trace.dumps[dump].is_peak);
  }
  EXPECT_EQ(got->trace.stats.values(), want->trace.stats.values());
}

TEST_P(DecodingTest, LaterGivesTheTablesOfAtOnce) {
  ExpectTheTablesOfAtOnce(*ReadDeferred(GetParam()));
}

TEST_P(DecodingTest, MeanwhileGivesTheTablesOfAtOnce) {
  ExpectTheTablesOfAtOnce(*ReadDeferred(GetParam(), /*begins_meanwhile=*/true));
}

TEST_P(DecodingTest, WholeStacksHoldTheFramesOfCallsites) {
  const auto want = ReadFixture(GetParam());
  const auto got = ReadFixtureForConversion(GetParam());
  EXPECT_EQ(got->Allocations(), want->Allocations());
  EXPECT_EQ(got->trace.callsites.row_count(), 0u);
  EXPECT_EQ(got->trace.stats.values(), want->trace.stats.values());
}

TEST_P(DecodingTest, WholeStacksBecomeTheCallsitesOfOneDecodedAtOnce) {
  const auto want = ReadFixture(GetParam());
  const auto got = std::make_unique<TestTrace>();
  got->builder.ReadWholeStacks();
  const std::string bytes = FixtureBytes(GetParam());
  MemorySource source(bytes);
  ASSERT_TRUE(ReadTrace(source, GetParam(), got->builder).ok());
  EXPECT_EQ(got->trace.callsites.row_count(), 0u);
  got->builder.UseCallsites();
  EXPECT_EQ(got->trace.stacks.row_count(), 0u);
  EXPECT_EQ(got->Allocations(), want->Allocations());
  EXPECT_EQ(got->trace.stats.values(), want->trace.stats.values());
  if (GetParam() == std::string_view("outlines"))
    return;  // callsites in outlines become others, and stay where they were
  ASSERT_EQ(got->trace.callsites.row_count(), want->trace.callsites.row_count());
  for (uint32_t row = 0; row < want->trace.callsites.row_count(); ++row) {
    EXPECT_EQ(got->trace.callsites.parent[row], want->trace.callsites.parent[row]);
    EXPECT_EQ(got->trace.callsites.frame[row], want->trace.callsites.frame[row]);
    EXPECT_EQ(got->trace.callsites.depth[row], want->trace.callsites.depth[row]);
  }
  EXPECT_TRUE(std::ranges::equal(got->trace.allocations.callsite.span(),
                                 want->trace.allocations.callsite.span()));
  EXPECT_TRUE(std::ranges::equal(got->trace.estimates.callsite.span(),
                                 want->trace.estimates.callsite.span()));
}

// Their stacks come before, between and after samples, and from several sequences.
TEST_P(DecodingTest, TablesAreTheSameWhenWhatStacksNeedIsFreedAfterTheLast) {
  const auto want = ReadFixture(GetParam());
  const auto got = ReadDeferred(GetParam());
  const std::atomic<bool> is_cancelled = false;
  EXPECT_TRUE(got->builder.decoding().Finish(got->builder, is_cancelled));
  EXPECT_EQ(got->Allocations(), want->Allocations());
  EXPECT_EQ(got->trace.callsites.row_count(), want->trace.callsites.row_count());
  EXPECT_EQ(got->trace.stats.values(), want->trace.stats.values());
}

INSTANTIATE_TEST_SUITE_P(Fixtures,
                         DecodingTest,
                         testing::Values("android_10",
                                         "dump_at_max",
                                         "exec",
                                         "flags",
                                         "incremental_state",
                                         "java",
                                         "missing_and_duplicate_ids",
                                         "outlines",
                                         "quirks",
                                         "two_dumps",
                                         "two_heaps"));

TEST(DecodeQueueTest, DumpsAndFramesAreThereBeforeStacksAndSamplesAre) {
  const auto test = ReadDeferred("two_dumps");
  EXPECT_EQ(test->trace.dumps.size(), 2u);
  EXPECT_EQ(test->trace.dumps[1].ts, 3000);
  EXPECT_EQ(test->trace.frames.row_count(), 3u);
  EXPECT_EQ(test->trace.callsites.row_count(), 0u);
  EXPECT_EQ(test->trace.allocations.row_count(), 0u);
}

// Until something is asked for, or for good.
TEST(DecodeQueueTest, SamplesWaitForStacksThatAreDecodedMeanwhile) {
  const auto test = ReadDeferred("two_dumps", /*begins_meanwhile=*/true);
  const std::atomic<bool> is_cancelled = false;
  EXPECT_TRUE(test->builder.decoding().RunStacks(is_cancelled));
  EXPECT_EQ(test->trace.callsites.row_count(),
            ReadFixture("two_dumps")->trace.callsites.row_count());
  EXPECT_LT(test->Allocations().size(), ReadFixture("two_dumps")->Allocations().size());
  ReadDeferred("two_dumps", /*begins_meanwhile=*/true).reset();
}

TEST(DecodeQueueTest, WhatWasCancelledGoesOnWhereItWas) {
  const auto test = ReadDeferred("two_dumps");
  DecodeQueue& queue = test->builder.decoding();
  std::atomic<bool> is_cancelled = true;
  EXPECT_FALSE(queue.Run(is_cancelled));
  EXPECT_FALSE(queue.empty());
  is_cancelled = false;
  EXPECT_TRUE(queue.Run(is_cancelled));
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(test->Allocations(), ReadFixture("two_dumps")->Allocations());
}

}  // namespace
}  // namespace heapprofd
