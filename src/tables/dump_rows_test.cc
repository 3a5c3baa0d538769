// Rows are their dump's; of each heap the last dump can stay alone, with the sums of all.
#include "tables/dump_rows.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

class DumpRowsTest : public testing::Test {
 protected:
  ImportedTrace trace_;
  DumpRows rows_{&trace_};
};

TEST_F(DumpRowsTest, RowsAreTheirDumps) {
  ImportedDump made;
  made.first_allocation = made.allocation_count = 9;  // of somebody else
  const uint32_t first = rows_.Begin(made);
  rows_.AddAllocation(1, 1, 10);
  rows_.AddAllocation(1, 0, 0);  // nothing
  const uint32_t second = rows_.Begin({});
  rows_.AddAllocation(2, 1, 20);
  EXPECT_EQ(trace_.dumps[first].first_allocation, 0u);
  EXPECT_EQ(trace_.dumps[first].allocation_count, 1u);
  EXPECT_EQ(trace_.dumps[second].first_allocation, 1u);
  EXPECT_EQ(trace_.allocations.dump[1], second);
  EXPECT_EQ(trace_.allocations.row_count(), 2u);
}

TEST_F(DumpRowsTest, WhoWantsNoEstimatesHasNone) {
  rows_.LeaveOutEstimates();
  rows_.Begin({});
  rows_.AddEstimate(1, {.live_bytes_error = 1});
  rows_.AddShape(1, {.count = 1});
  rows_.AddLiveBlock(1, 4096, 8);
  rows_.AddAllocation(1, 1, 10);
  EXPECT_EQ(trace_.estimates.row_count(), 0u);
  EXPECT_EQ(trace_.shapes.row_count(), 0u);
  EXPECT_EQ(trace_.live_blocks.row_count(), 0u);
  EXPECT_EQ(trace_.allocations.row_count(), 1u);
}

TEST_F(DumpRowsTest, TheLastDumpOfAHeapHasTheSumsOfAll) {
  ImportedDump dump;
  dump.ts = 1;
  rows_.Begin(dump);
  rows_.AddAllocation(5, 1, 10);
  rows_.AddAllocation(5, -1, -4);
  dump.ts = 2;
  rows_.Begin(dump);
  rows_.AddAllocation(5, 2, 30);
  rows_.AddEstimate(5, {.live_bytes_error = 3});
  rows_.KeepLast();
  ASSERT_EQ(trace_.dumps.size(), 1u);
  EXPECT_EQ(trace_.dumps[0].ts, 2);
  ASSERT_EQ(trace_.allocations.row_count(), 2u);  // what was freed is a row of its own
  EXPECT_EQ(trace_.allocations.size[0], 40);
  EXPECT_EQ(trace_.allocations.size[1], -4);
  EXPECT_EQ(trace_.estimates.row_count(), 1u);
}

}  // namespace
}  // namespace heapprofd
