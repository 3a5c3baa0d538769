#include "profile/whole_figures.h"

#include <gtest/gtest.h>

#include "profile/limits.h"

namespace heapprofd {
namespace {

TEST(WholeFigures, AreRoundedAndConsistent) {
  HeapDump dump;
  dump.sampling_interval = 4096;
  dump.callsites.emplace(
      0, CallsiteTotals{.allocated = {.bytes = 10.4, .count = 1.6, .bytes_variance = 2.5},
                        .freed = {.bytes = 10.6, .count = 1.7}});
  dump.callsites.emplace(
      1, CallsiteTotals{.allocated = {.bytes = 99.5, .count = 3}, .freed = {}});
  dump.peak.emplace(0, Estimate{.bytes = 0.3, .count = 0.1});
  dump.peak.emplace(1, Estimate{.bytes = 20.5, .count = 1.2});
  dump.peak_total = {.bytes = 20.8, .low = 20.2, .high = 30.5};
  dump.shapes = {{.estimate = {.bytes = 1.5, .count = 0.4}}};
  MakeWhole(&dump);
  const CallsiteTotals& first = dump.callsites.find(0)->second;
  EXPECT_EQ(first.allocated.bytes, 10);
  EXPECT_EQ(first.allocated.count, 2);
  EXPECT_EQ(first.allocated.bytes_variance, 2.5);
  EXPECT_EQ(first.freed.bytes, 10);
  EXPECT_EQ(dump.callsites.find(1)->second.allocated.bytes, 100);
  EXPECT_EQ(dump.peak.find(0), dump.peak.end());
  EXPECT_EQ(dump.peak.find(1)->second.bytes, 21);
  EXPECT_EQ(dump.peak_total.bytes, 21);
  EXPECT_EQ(dump.peak_total.low, 20);
  EXPECT_EQ(dump.peak_total.high, 31);
  EXPECT_EQ(dump.shapes[0].estimate.bytes, 2);
}

TEST(WholeFigures, OfTheSumOfWhatIsLiveAreThoseThatATraceGivesBack) {
  HeapDump dump;
  dump.sampling_interval = 4096;
  for (CallsiteId id = 0; id < 40; ++id) {
    const double bytes = 6000.3 + 111.1 * id;
    dump.callsites.emplace(
        id,
        CallsiteTotals{.allocated = {.bytes = bytes, .bytes_variance = 5e6 + 7.7 * id},
                       .freed = {}});
    dump.possible_live = 6000.0 * (id + 1) + 123;
    dump.certain_live = 1000 * id;
    HeapDump whole = dump;
    MakeWhole(&whole);
    const BoundedBytes live = LiveTotal(whole);
    whole.certain_live = live.low;  // as they are written
    whole.possible_live = live.high;
    const BoundedBytes again = LiveTotal(whole);
    EXPECT_EQ(again.bytes, live.bytes) << id;
    EXPECT_EQ(again.low, live.low) << id;
    EXPECT_EQ(again.high, live.high) << id;
  }
}

}  // namespace
}  // namespace heapprofd
