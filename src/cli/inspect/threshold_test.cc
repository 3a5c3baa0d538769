// What a gate says about figures that are estimates.
#include "cli/inspect/threshold.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

constexpr double kMib = 1048576;

Threshold Parse(const std::string& text, bool of_change) {
  const Result<Threshold> threshold =
      ParseThreshold(text, {"live", "peak", "calls"}, of_change);
  EXPECT_TRUE(threshold.ok()) << threshold.status().message();
  return threshold.ok() ? threshold.value() : Threshold();
}

std::string ErrorOf(const std::string& text, bool of_change) {
  const Result<Threshold> threshold =
      ParseThreshold(text, {"live", "peak", "calls"}, of_change);
  return threshold.ok() ? "" : threshold.status().message();
}

BoundedBytes Mib(double value, double side) {
  return {
      .bytes = value * kMib, .low = (value - side) * kMib, .high = (value + side) * kMib};
}

TEST(ThresholdTest, BoundsAreSizesNumbersAndOfChangesPercents) {
  EXPECT_EQ(Parse("peak>300MiB", false).bound, 300 * kMib);
  EXPECT_EQ(Parse("peak>1.5K", false).bound, 1536);
  EXPECT_EQ(Parse("calls<1000", false).bound, 1000);
  EXPECT_TRUE(Parse("calls<1000", false).is_less);
  EXPECT_EQ(Parse("live>+5%", true).bound, 5);
  EXPECT_TRUE(Parse("live>5%", true).is_percent);
  EXPECT_EQ(Parse("live<-2MiB", true).bound, -2 * kMib);
}

TEST(ThresholdTest, UnitsMeanWhatIsShown) {
  EXPECT_EQ(Parse("calls>19.6k", false).bound, 19'600);
  EXPECT_EQ(Parse("calls>0.02M", false).bound, 20'000);
  EXPECT_EQ(Parse("calls<-2K", true).bound, -2000);
  EXPECT_EQ(Parse("peak>2MB", false).bound, 2e6);
  EXPECT_EQ(Parse("peak>2kB", false).bound, 2000);
  EXPECT_EQ(Parse("peak>2KiB", false).bound, 2048);
  EXPECT_EQ(Parse("peak>2k", false).bound, 2048) << "as in --interval 2k";
  EXPECT_EQ(Parse("peak>2GiB", false).bound, 2048 * kMib);
  EXPECT_EQ(Parse("peak>2B", false).bound, 2);
  for (const char* text : {"calls>2KiB", "calls>2kB", "calls>2B", "peak>2KIB"})
    EXPECT_NE(ErrorOf(text, false).find("no size or number"), std::string::npos) << text;
}

TEST(ThresholdTest, WhatHasNoMeaningIsRefused) {
  EXPECT_NE(ErrorOf("peak", false).find("neither > nor <"), std::string::npos);
  EXPECT_NE(ErrorOf("rss>1", false).find("the figures are live, peak, calls"),
            std::string::npos);
  for (const char* text : {"peak>", "peak>x", "peak>5%", "peak>+5", "peak>-5", "peak>5Q",
                           "peak>nan", "peak>=5"})
    EXPECT_NE(ErrorOf(text, false).find("no size or number"), std::string::npos) << text;
  for (const char* text : {"live>", "live>+-5%", "live>5%%", "live>inf"})
    EXPECT_NE(ErrorOf(text, true).find("percentage"), std::string::npos) << text;
}

TEST(ThresholdTest, OnlyWhatIsOutsideOfTheErrorFails) {
  const Threshold most = Parse("peak>300MiB", false);
  EXPECT_EQ(Judge(most, Mib(289, 10)), Verdict::kHolds);
  EXPECT_EQ(Judge(most, Mib(299, 10)), Verdict::kWithinError) << "it may be more";
  EXPECT_EQ(Judge(most, Mib(300, 0)), Verdict::kHolds);
  EXPECT_EQ(Judge(most, Mib(305, 10)), Verdict::kWithinError);
  EXPECT_EQ(Judge(most, Mib(311, 10)), Verdict::kExceeded);
  EXPECT_EQ(Judge(most, Mib(300.001, 0)), Verdict::kExceeded);
  const Threshold least = Parse("live<100MiB", false);
  EXPECT_EQ(Judge(least, Mib(111, 10)), Verdict::kHolds);
  EXPECT_EQ(Judge(least, Mib(101, 10)), Verdict::kWithinError) << "it may be less";
  EXPECT_EQ(Judge(least, Mib(95, 10)), Verdict::kWithinError);
  EXPECT_EQ(Judge(least, Mib(89, 10)), Verdict::kExceeded);
}

TEST(ThresholdTest, ChangesHaveTheErrorsOfBoth) {
  const Threshold percent = Parse("live>+5%", true);
  EXPECT_EQ(JudgeChange(percent, Mib(100, 0), Mib(105, 0)), Verdict::kHolds);
  EXPECT_EQ(JudgeChange(percent, Mib(100, 0), Mib(106, 0)), Verdict::kExceeded);
  EXPECT_EQ(JudgeChange(percent, Mib(100, 3), Mib(104, 3)), Verdict::kWithinError);
  EXPECT_EQ(JudgeChange(percent, Mib(100, 3), Mib(109, 3)), Verdict::kWithinError);
  EXPECT_EQ(JudgeChange(percent, Mib(100, 3), Mib(110, 3)), Verdict::kExceeded);
  EXPECT_EQ(JudgeChange(percent, Mib(0, 0), Mib(1, 0)), Verdict::kExceeded);
  const Threshold absolute = Parse("live<-1MiB", true);
  EXPECT_EQ(JudgeChange(absolute, Mib(100, 0), Mib(98, 0)), Verdict::kExceeded);
  EXPECT_EQ(JudgeChange(absolute, Mib(100, 1), Mib(98, 1)), Verdict::kWithinError);
  EXPECT_EQ(JudgeChange(absolute, Mib(100, 0), Mib(99.5, 0)), Verdict::kHolds);
}

}  // namespace
}  // namespace heapprofd
