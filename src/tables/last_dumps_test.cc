// Dumps whose order in the file is not that of their times.
#include "tables/last_dumps.h"

#include <gtest/gtest.h>

#include <vector>

namespace heapprofd {
namespace {

ImportedDump DumpOf(uint32_t upid, StringId heap, int64_t ts, uint32_t quality = kNoId) {
  ImportedDump dump;
  dump.upid = upid;
  dump.heap_name = heap;
  dump.ts = ts;
  dump.quality = quality;
  return dump;
}

TEST(LastDumpsTest, TimesCountAndThenTheFile) {
  ImportedTrace trace;
  for (const int64_t ts : {10, 30, 20})
    trace.dumps.push_back(DumpOf(1, 7, ts));
  for (const int64_t ts : {5, 5})
    trace.dumps.push_back(DumpOf(1, 8, ts));
  trace.dumps.push_back(DumpOf(2, 7, 1));
  EXPECT_EQ(LastDumps(trace), (std::vector<uint32_t>{1, 4, 5}));
}

TEST(LastDumpsTest, OnesWithoutFiguresDoNotCountForThose) {
  ImportedTrace trace;
  trace.dumps.push_back(DumpOf(1, 7, 20, 3));
  trace.dumps.push_back(DumpOf(1, 7, 10, 4));
  trace.dumps.push_back(DumpOf(1, 7, 30));
  EXPECT_EQ(LastDumpsWithQuality(trace), (std::map<uint32_t, uint32_t>{{1, 0}}));
}

TEST(LastDumpsTest, GraphsAreTakenByTheirTimes) {
  ImportedTrace trace;
  trace.heap_graph.graphs.push_back({.upid = 1, .ts = 20});
  trace.heap_graph.graphs.push_back({.upid = 1, .ts = 10});
  trace.heap_graph.graphs.push_back({.upid = 2, .ts = 1});
  EXPECT_EQ(LastGraphs(trace), (std::map<uint32_t, uint32_t>{{1, 0}, {2, 2}}));
}

}  // namespace
}  // namespace heapprofd
