#include "import/pprof_values.h"

#include <gtest/gtest.h>

#include <array>

namespace heapprofd {
namespace {

using enum PprofFigure;

// "live_size=1 alloc_size=0*1024+3": each figure that there is, and its values.
std::string Chosen(const std::vector<NamedPprofValue>& values,
                   std::string_view default_type = "") {
  constexpr std::array kNames = {"live_size",   "live_count", "alloc_size",
                                 "alloc_count", "peak_size",  "peak_count"};
  const PprofFigures figures = ChoosePprofFigures(values, default_type);
  std::string text;
  for (size_t i = 0; i < kPprofFigures; ++i) {
    std::string sum;
    for (const PprofSum::Part& part : figures.sums[i].parts)
      sum += (sum.empty() ? "" : "+") + std::to_string(part.value) +
             (part.factor == 1 ? "" : "*" + std::to_string(part.factor));
    if (!sum.empty())
      text += (text.empty() ? "" : " ") + std::string(kNames[i]) + "=" + sum;
  }
  for (const std::string& unused : figures.unused)
    text += " !" + unused;
  return text;
}

// Position says nothing, nor does how a name is spelled.
TEST(PprofValuesTest, FiguresAreChosenByNameAndUnit) {
  EXPECT_EQ(Chosen({{"alloc_objects", "count"},
                    {"alloc_space", "bytes"},
                    {"inuse_objects", "count"},
                    {"inuse_space", "bytes"}}),
            "live_size=3 live_count=2 alloc_size=1 alloc_count=0");
  EXPECT_EQ(Chosen({{"inuse-space", "bytes"}, {"alloc-space", "bytes"}}),
            "live_size=0 alloc_size=1");
  EXPECT_EQ(Chosen({{"alloc-space", "bytes"}, {"inuse-space", "bytes"}}),
            "live_size=1 alloc_size=0");
  EXPECT_EQ(Chosen({{"Total malloc size", "bytes"}, {"Unreleased malloc size", "bytes"}}),
            "live_size=1 alloc_size=0");
}

TEST(PprofValuesTest, ValuesOfOtherKindsAreNamedAndNotUsed) {
  // google/tcmalloc's heap
  EXPECT_EQ(Chosen({{"objects", "count"},
                    {"space", "bytes"},
                    {"resident_space", "bytes"},
                    {"locked_space", "bytes"}},
                   "space"),
            "live_size=1 live_count=0 !resident_space !locked_space");
  // Datadog's .NET
  EXPECT_EQ(Chosen({{"cpu", "nanoseconds"},
                    {"exception", "count"},
                    {"alloc-samples", "count"},
                    {"alloc-size", "bytes"},
                    {"lock-count", "count"}}),
            "alloc_size=3 alloc_count=2 !cpu !exception !lock-count");
  EXPECT_EQ(Chosen({{"space", "count"}}), " !space");
}

TEST(PprofValuesTest, ProfilesOfSomethingElseHaveNoFigure) {
  for (const auto& [type, unit] :
       {std::pair("cpu", "nanoseconds"), std::pair("samples", "count"),
        std::pair("goroutine", "count"), std::pair("contentions", "count"),
        std::pair("wall", "microseconds"), std::pair("resident", "bytes")}) {
    const PprofFigures figures = ChoosePprofFigures({{type, unit}}, type);
    EXPECT_FALSE(figures.HasAny()) << type;
  }
  EXPECT_EQ(DescribePprofValues({{"samples", "count"}, {"cpu", "nanoseconds"}}),
            "samples in count, cpu in nanoseconds");
}

TEST(PprofValuesTest, PartsOfOneFigureAddUp) {
  EXPECT_EQ(Chosen({{"alloc_in_new_tlab_bytes", "bytes"},
                    {"alloc_in_new_tlab_objects", "count"},
                    {"alloc_outside_tlab_bytes", "bytes"}}),
            "alloc_size=0+2 alloc_count=1");
}

TEST(PprofValuesTest, OfTwoNamesOfOneFigureTheDefaultIsTaken) {
  EXPECT_EQ(Chosen({{"heap_space", "bytes"}, {"inuse_space", "bytes"}}),
            "live_size=1 !heap_space");
  EXPECT_EQ(Chosen({{"heap_space", "bytes"}, {"inuse_space", "bytes"}}, "heap_space"),
            "live_size=0 !inuse_space");
  // google/tcmalloc's allocations have the names of its heap.
  EXPECT_EQ(Chosen({{"objects", "count"}, {"space", "bytes"}}, "objects"),
            "alloc_size=1 alloc_count=0");
}

TEST(PprofValuesTest, OurFilesOfTheMaximumTellBothMoments) {
  EXPECT_EQ(Chosen({{"alloc_objects", "count"},
                    {"alloc_space", "bytes"},
                    {"objects", "count"},
                    {"space", "bytes"},
                    {"max_objects", "count"},
                    {"max_space", "bytes"}},
                   "max_space"),
            "live_size=3 live_count=2 alloc_size=1 alloc_count=0 peak_size=5 "
            "peak_count=4");
}

TEST(PprofValuesTest, UnitsOfMemoryAreThoseOfPprof) {
  EXPECT_EQ(BytesOfUnit("bytes"), 1);
  EXPECT_EQ(BytesOfUnit("B"), 1);
  EXPECT_EQ(BytesOfUnit("kilobytes"), 1024);
  EXPECT_EQ(BytesOfUnit("kB"), 1024);
  EXPECT_EQ(BytesOfUnit("MB"), 1 << 20);
  EXPECT_EQ(BytesOfUnit("gigabyte"), 1 << 30);
  EXPECT_EQ(BytesOfUnit("count"), 0);
  EXPECT_EQ(BytesOfUnit("nanoseconds"), 0);
  EXPECT_EQ(BytesOfUnit(""), 0);
  EXPECT_EQ(Chosen({{"inuse_space", "megabytes"}}), "live_size=0*1048576");
}

}  // namespace
}  // namespace heapprofd
