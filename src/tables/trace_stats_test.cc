// What is said of a trace's counters, a line each.
#include "tables/trace_stats.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(TraceStatsTest, FlagsThatFiguresTellAreKnownByTheirLines) {
  TraceStats stats;
  for (const StatId told :
       {StatId::kHeapprofdBufferCorrupted, StatId::kHeapprofdBufferOverran,
        StatId::kHeapprofdClientError, StatId::kHeapprofdHitGuardrail})
    stats.Set(told, 7, 1);
  const std::vector<std::string> lines = TraceWarnings(stats);
  ASSERT_EQ(lines.size(), 4u);
  for (const std::string& line : lines)
    EXPECT_TRUE(IsToldByFigures(line)) << line;
}

TEST(TraceStatsTest, WhatAReaderHasNoticedNoFigureTells) {
  TraceStats stats;
  stats.Count(StatId::kClockSyncFailure);
  stats.Set(StatId::kHeapprofdRejectedConcurrent, 7, 1);
  const std::vector<std::string> lines = TraceWarnings(stats);
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& line : lines)
    EXPECT_FALSE(IsToldByFigures(line)) << line;
}

}  // namespace
}  // namespace heapprofd
