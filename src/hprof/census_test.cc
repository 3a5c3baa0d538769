#include "hprof/census.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "hprof/histogram.h"
#include "hprof/test_dump.h"

namespace heapprofd::hprof {
namespace {

// A heap without gaps, as a virtual machine with this layout has it: `rounds` times an
// array of numbers, one of references and an instance of `class_name` with a reference
// and four bytes, to which it adds `padding`. With `by_kind` it is not dumped in the order
// of addresses.
std::string HeapLaidOutAs(const ObjectLayout& layout,
                          int rounds,
                          const std::string& class_name = "Node",
                          uint64_t padding = 0,
                          bool by_kind = false) {
  TestDump dump(8);
  dump.String(1, "field").Class(256, "java/lang/Class").Class(512, class_name);
  dump.Class(768, "[LNode;");
  const std::string classes = dump.ClassDump(256, 0, {}) +
                              dump.ClassDump(512, 0, {{1, kObject}, {1, kInt}}) +
                              dump.ClassDump(768, 0, {});
  std::string kinds[3];
  std::string& arrays = kinds[0];
  std::string& numbers = by_kind ? kinds[1] : arrays;
  std::string& instances = by_kind ? kinds[2] : arrays;
  uint64_t at = 0x1000;
  const auto advance = [&](uint64_t bytes) { at += Padded(bytes, layout.alignment); };
  for (int i = 0; i < rounds; ++i) {
    const size_t length = 5 + static_cast<size_t>(i) % 41;
    numbers += dump.Bytes(at, std::string(length, 'x'));
    advance(layout.array_header_bytes + length);
    arrays += dump.Objects(at, 768, std::vector<uint64_t>(length, 0));
    advance(Padded(layout.array_header_bytes, layout.reference_bytes) +
            length * layout.reference_bytes);
    instances += dump.Instance(at, 512, dump.Id(0) + TestDump::Number(7));
    advance(Padded(layout.object_header_bytes + layout.reference_bytes + 4 + padding, 8));
  }
  return dump.Segment(classes + kinds[0] + kinds[1] + kinds[2]).End().bytes();
}

HeapCensus CensusOf(const std::string& bytes) {
  const DumpFile file = DumpFile::Read(bytes, "test").value();
  return TakeCensus(file, file.dumps()[0]);
}

uint64_t BytesOf(const std::string& bytes, const std::string& name) {
  const DumpFile file = DumpFile::Read(bytes, "test").value();
  for (const HistogramRow& row : MakeHistogram(file, TakeCensus(file, file.dumps()[0]))) {
    if (row.name == name)
      return row.bytes / row.objects;
  }
  return 0;
}

TEST(CensusTest, EveryLayoutIsConcludedFromWhatLiesSideBySide) {
  for (const uint32_t alignment : {8u, 16u, 32u}) {
    for (const auto& [reference, header, array] :
         std::vector<std::array<uint32_t, 3>>{{4, 12, 16},
                                              {8, 12, 16},
                                              {8, 16, 24},
                                              {4, 16, 24},
                                              {4, 16, 20},
                                              {8, 16, 20},
                                              {4, 8, 12},
                                              {8, 8, 12}}) {
      const ObjectLayout want{reference, header, array, false, alignment};
      for (const bool by_kind : {false, true}) {
        const HeapCensus found = CensusOf(HeapLaidOutAs(want, 200, "Node", 0, by_kind));
        EXPECT_TRUE(found.is_layout_known);
        EXPECT_EQ(found.layout.reference_bytes, reference);
        EXPECT_EQ(found.layout.object_header_bytes, header);
        EXPECT_EQ(found.layout.array_header_bytes, array);
        EXPECT_EQ(found.layout.alignment, alignment);
      }
    }
  }
}

TEST(CensusTest, SizesAreMultiplesOfTheAlignment) {
  const std::string bytes = HeapLaidOutAs({4, 12, 16, false, 32}, 200);
  EXPECT_EQ(BytesOf(bytes, "Node"), 32u);
  EXPECT_EQ(BytesOf(HeapLaidOutAs({4, 16, 24}, 200), "Node"), 24u);
}

TEST(CensusTest, AFewObjectsDoNotTellHowAllAreAligned) {
  EXPECT_EQ(CensusOf(HeapLaidOutAs({4, 12, 16, false, 32}, 2)).layout.alignment, 8u);
}

TEST(CensusTest, WithoutEvidenceTheLayoutIsNotKnown) {
  TestDump dump(8);
  dump.Class(20, "Node");
  dump.Segment(dump.ClassDump(20, 0, {}) + dump.Instance(0x1000, 20, ""));
  EXPECT_FALSE(CensusOf(dump.End().bytes()).is_layout_known);
  TestDump empty(8);
  EXPECT_TRUE(CensusOf(empty.Segment("").End().bytes()).is_layout_known);
}

TEST(CensusTest, PaddingIsFoundWhereNothingIsNearer) {
  const ObjectLayout usual{4, 12, 16};
  EXPECT_EQ(BytesOf(HeapLaidOutAs(usual, 200, "Node", 256), "Node"), 24u + 256);
  EXPECT_EQ(BytesOf(HeapLaidOutAs(usual, 200, "Node", 384), "Node"), 24u + 384);
  EXPECT_EQ(BytesOf(HeapLaidOutAs(usual, 200, "Node", 200), "Node"), 24u);
  EXPECT_EQ(BytesOf(HeapLaidOutAs(usual, 200, "Node", 264), "Node"), 24u + 264)
      << "with what is aligned in it";
  // One alone may have a gap behind it.
  EXPECT_EQ(BytesOf(HeapLaidOutAs(usual, 2, "Node", 256), "Node"), 24u);
}

TEST(CensusTest, DistancesTellNothingOfADumpInNoOrderOfAddresses) {
  TestDump dump(8);
  dump.Class(512, "Far").Class(768, "Node");
  std::string body = dump.ClassDump(512, 0, {}) + dump.ClassDump(768, 0, {});
  for (uint64_t i = 0; i < 20; ++i)
    body += dump.Instance(0x100000 + i * 320, 512, "");
  for (uint64_t i = 0; i < 20; ++i)
    body += dump.Instance(0x80000 - i * 16, 768, "");
  EXPECT_EQ(BytesOf(dump.Segment(body).End().bytes(), "Far"), 16u);
}

TEST(CensusTest, ThePaddingOfTheLanguagesClassesIsKnown) {
  const ObjectLayout usual{4, 12, 16};
  const std::string cell = "java.util.concurrent.atomic.Striped64$Cell";
  EXPECT_EQ(BytesOf(HeapLaidOutAs(usual, 1, cell, 256), cell), 24u + 256);
  EXPECT_EQ(BytesOf(HeapLaidOutAs(usual, 200, cell, 0), cell), 24u)
      << "not where something lies in it: -XX:-EnableContended";
}

TEST(CensusTest, AMachineOf32BitsPadsTheLanguagesClassesToo) {
  TestDump dump(4);
  dump.String(1, "field").Class(256, "java/lang/Thread").Class(512, "Worker");
  dump.Class(768, "Node");
  std::string body = dump.ClassDump(256, 0, {{1, kObject}, {1, kInt}}) +
                     dump.ClassDump(512, 256, {{1, kInt}}) + dump.ClassDump(768, 0, {});
  body += dump.Instance(0x1000, 256, dump.Id(0) + TestDump::Number(7));
  body +=
      dump.Instance(0x2000, 512, TestDump::Number(1) + dump.Id(0) + TestDump::Number(7));
  for (uint64_t at = 0x3000; at < 0x3000 + 10 * 264; at += 264)  // numbers, not addresses
    body += dump.Instance(at, 768, "");
  const std::string bytes = dump.Segment(body).End().bytes();
  EXPECT_EQ(BytesOf(bytes, "java.lang.Thread"), 8u + 4 + 4 + 256);
  EXPECT_EQ(BytesOf(bytes, "Worker"), 8u + 4 + 4 + 256 + 8);
  EXPECT_EQ(BytesOf(bytes, "Node"), 8u);
}

TEST(CensusTest, PaddingOfDeepClassesIsFoundOnce) {
  constexpr uint64_t kClasses = 200'000;  // a walk up from each: 200 million steps
  TestDump dump(8);
  dump.String(1, "field");
  std::string body;
  for (uint64_t i = 1; i <= kClasses; ++i)
    body += dump.ClassDump(i * 16, i == 1 ? kClasses * 16 : (i - 1) * 16, {});
  for (uint64_t i = 1; i <= kClasses; ++i)
    body += dump.Instance((i + kClasses) * 16, i * 16, "");
  EXPECT_EQ(CensusOf(dump.Segment(body).End().bytes()).objects, 2 * kClasses);
}

}  // namespace
}  // namespace heapprofd::hprof
