#include "base/code_segments.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

CodeSegments Of(std::initializer_list<CodeSegment> segments) {
  CodeSegments all;
  for (const CodeSegment& segment : segments)
    all.Add(segment);
  return all;
}

// As ld places what --section-start names.
const CodeSegments kApart =
    Of({{.offset = 0x1000, .address = 0x1000, .file_size = 0x1241},
        {.offset = 0x3123, .address = 0x805123, .file_size = 0x26}});

// As lld does: both are in the file's second page.
const CodeSegments kInOnePage =
    Of({{.offset = 0x1130, .address = 0x805130, .file_size = 0x19},
        {.offset = 0x1650, .address = 0x807650, .file_size = 0x240}});

constexpr uint64_t kBase = 0x5500'0000'0000;

TEST(CodeSegmentsTest, AMappingIsOfTheSegmentThatHasItsOffset) {
  EXPECT_EQ(kApart.OfMapping(kBase + 0x1000, 0x1000, 0)->load_bias(), 0u);
  EXPECT_EQ(kApart.OfMapping(kBase + 0x2000, 0x2000, 0)->load_bias(), 0u);
  EXPECT_EQ(kApart.OfMapping(kBase + 0x805000, 0x3000, 0)->load_bias(), 0x802000u);
  EXPECT_EQ(kApart.OfMapping(kBase, 0, 0), nullptr);
  EXPECT_EQ(kApart.OfMapping(kBase + 0x4000, 0x4000, 0), nullptr);
  EXPECT_EQ(CodeSegments().OfMapping(kBase, 0, 0), nullptr);
}

TEST(CodeSegmentsTest, OfTwoSegmentsInOnePageTheImagesBaseTells) {
  const CodeSegment& first = kInOnePage.all().front();
  const CodeSegment& second = kInOnePage.all().back();
  EXPECT_EQ(kInOnePage.OfMapping(kBase + 0x805000, 0x1000, 0), &first);
  EXPECT_EQ(CodeSegments::ImageBase(kBase + 0x805000, 0x1000, first), kBase);
  EXPECT_EQ(kInOnePage.OfMapping(kBase + 0x807000, 0x1000, kBase), &second);
  EXPECT_EQ(kInOnePage.OfMapping(kBase + 0x805000, 0x1000, kBase), &first);
  EXPECT_EQ(kInOnePage.OfMapping(kBase + 0x805000, 0x1000, kBase - 0x10000), &first);
}

TEST(CodeSegmentsTest, AProgramThatIsNotMovedHasBaseZero) {
  EXPECT_EQ(kInOnePage.OfMapping(0x807000, 0x1000, 0), &kInOnePage.all().back());
}

TEST(CodeSegmentsTest, AByteIsInTheSegmentThatHasIt) {
  EXPECT_EQ(kInOnePage.Holding(0x1130), &kInOnePage.all().front());
  EXPECT_EQ(kInOnePage.Holding(0x1149), nullptr);
  EXPECT_EQ(kInOnePage.Holding(0x1650), &kInOnePage.all().back());
  EXPECT_EQ(kInOnePage.Holding(0x112f), nullptr);
}

TEST(CodeSegmentsTest, NumbersWithoutMeaningAreHarmless) {
  CodeSegments many;
  for (uint64_t i = 0; i < 100'000; ++i)
    many.Add({.offset = UINT64_MAX - i, .address = i, .file_size = UINT64_MAX});
  EXPECT_LE(many.all().size(), 100u);
  EXPECT_NE(many.OfMapping(0, UINT64_MAX - 0xfff, 0), nullptr);
  EXPECT_EQ(many.Holding(0), nullptr);
}

}  // namespace
}  // namespace heapprofd
