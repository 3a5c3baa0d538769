#include "hprof/strings/duplicate_strings.h"

#include <gtest/gtest.h>

#include "hprof/test_dump.h"

namespace heapprofd::hprof {
namespace {

constexpr uint64_t kString = 20;

// The class String with a value and a coder, and the dump's first segment begun with it.
TestDump WithStrings(uint32_t id_bytes) {
  TestDump dump(id_bytes);
  dump.String(1, "value").String(2, "coder").Class(kString, "java/lang/String");
  dump.Segment(dump.ClassDump(kString, 0, {{1, kObject}, {2, kByte}}));
  return dump;
}

std::string StringOf(const TestDump& dump, uint64_t id, uint64_t array, char coder = 0) {
  return dump.Instance(id, kString, dump.Id(array) + coder);
}

std::string Chars(const TestDump& dump, uint64_t id, std::string_view data) {
  return dump.Root(kPrimitiveArrayDump, id, TestDump::Number(0)) +
         TestDump::Number(static_cast<uint32_t>(data.size() / 2)) +
         static_cast<char>(kChar) + std::string(data);
}

DuplicateStrings Find(const TestDump& dump, size_t most = SIZE_MAX) {
  const Result<DumpFile> file = DumpFile::Read(dump.bytes(), "test");
  EXPECT_TRUE(file.ok());
  const HeapDump& heap = file.value().dumps().at(0);
  return FindDuplicateStrings(file.value(), heap, TakeCensus(file.value(), heap), most);
}

class DuplicateStringsTest : public testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(IdBytes, DuplicateStringsTest, testing::Values(4, 8));

TEST_P(DuplicateStringsTest, EqualTextsInSeveralArraysAreOneRow) {
  TestDump dump = WithStrings(GetParam());
  dump.Segment(StringOf(dump, 100, 200) + StringOf(dump, 108, 216) +
               StringOf(dump, 116, 232) + dump.Bytes(200, "same text") +
               dump.Bytes(216, "same text") + dump.Bytes(232, "other text"))
      .End();
  const DuplicateStrings found = Find(dump);
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0].text, "same text");
  EXPECT_EQ(found.rows[0].length, 9u);
  EXPECT_EQ(found.rows[0].strings, 2u);
  EXPECT_EQ(found.rows[0].arrays, 2u);
  EXPECT_EQ(found.rows[0].wasted * 2, found.rows[0].bytes);
  EXPECT_EQ(found.wasted, found.rows[0].wasted);
  EXPECT_EQ(found.strings, 3u);
  EXPECT_EQ(found.texts, 1u);
}

TEST_P(DuplicateStringsTest, ASharedArrayIsWastedByNobody) {
  TestDump dump = WithStrings(GetParam());
  dump.Segment(StringOf(dump, 100, 200) + StringOf(dump, 108, 200) +
               dump.Bytes(200, "one array"))
      .End();
  const DuplicateStrings found = Find(dump);
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0].strings, 2u);
  EXPECT_EQ(found.rows[0].arrays, 1u);
  EXPECT_LT(found.rows[0].wasted, found.rows[0].bytes / 2);  // only a String
}

TEST_P(DuplicateStringsTest, AllFormsOfTextBecomeUtf8) {
  TestDump dump = WithStrings(GetParam());
  dump.Segment(StringOf(dump, 100, 200) + StringOf(dump, 108, 200) +
               dump.Bytes(200, "caf\xe9"))
      .Segment(StringOf(dump, 116, 216, 1) + StringOf(dump, 124, 216, 1) +
               dump.Bytes(216, std::string_view("\xac\x20\x3d\xd8\x00\xde", 6)))
      .Segment(StringOf(dump, 132, 232) + StringOf(dump, 140, 232) +
               Chars(dump, 232, std::string_view("\0a\xd8\0\0b", 6)))
      .End();
  std::vector<std::string> texts;
  for (const DuplicateString& row : Find(dump).rows)
    texts.push_back(row.text);
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(texts,
            (std::vector<std::string>{"a\xef\xbf\xbd"
                                      "b",
                                      "caf\xc3\xa9", "\xe2\x82\xac\xf0\x9f\x98\x80"}));
}

TEST_P(DuplicateStringsTest, TextsOfEqualWasteComeAsTheyAreInTheFile) {
  TestDump dump = WithStrings(GetParam());
  std::string objects;
  std::vector<std::string> texts;
  for (uint64_t text = 0; text < 20; ++text) {
    const uint64_t id = 1000 + 100 * text;
    texts.push_back("text " + std::string(1, static_cast<char>('a' + text * 7 % 20)));
    objects += StringOf(dump, id, id + 50) + StringOf(dump, id + 10, id + 70) +
               dump.Bytes(id + 50, texts.back()) + dump.Bytes(id + 70, texts.back());
  }
  dump.Segment(objects).End();
  std::vector<std::string> found;
  for (const DuplicateString& row : Find(dump).rows)
    found.push_back(row.text);
  EXPECT_EQ(found, texts);
}

TEST_P(DuplicateStringsTest, RowsAreCutAndTotalsAreNot) {
  TestDump dump = WithStrings(GetParam());
  dump.Segment(StringOf(dump, 100, 200) + StringOf(dump, 108, 200) +
               StringOf(dump, 116, 216) + StringOf(dump, 124, 216) +
               dump.Bytes(200, "a") + dump.Bytes(216, std::string(1000, 'b')))
      .End();
  const DuplicateStrings found = Find(dump, 1);
  EXPECT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.texts, 2u);
  EXPECT_EQ(Find(dump).rows.size(), 2u);
}

TEST_P(DuplicateStringsTest, WhatIsNotThereIsLeftOut) {
  TestDump dump = WithStrings(GetParam());
  dump.Segment(StringOf(dump, 100, 0) + StringOf(dump, 108, 999) +
               dump.Instance(116, kString, "") + StringOf(dump, 124, 200) +
               dump.NoData(200, 50))
      .End();
  EXPECT_EQ(Find(dump).strings, 0u);
  EXPECT_EQ(Find(Lists(GetParam())).strings, 0u);  // no class String at all
}

TEST_P(DuplicateStringsTest, PartsOfAnArrayAreReadWhereTheyBegin) {
  TestDump dump(GetParam());
  dump.String(1, "value").String(2, "offset").String(3, "count");
  dump.Class(kString, "java.lang.String");
  dump.Segment(dump.ClassDump(kString, 0, {{1, kObject}, {2, kInt}, {3, kInt}}));
  const auto part = [&](uint64_t id, uint64_t array, uint32_t offset, uint32_t count) {
    return dump.Instance(
        id, kString, dump.Id(array) + TestDump::Number(offset) + TestDump::Number(count));
  };
  dump.Segment(part(100, 200, 1, 2) + part(108, 216, 0, 2) +
               Chars(dump, 200, std::string_view("\0a\0b\0c\0d", 8)) +
               Chars(dump, 216, std::string_view("\0b\0c", 4)) + part(116, 232, 7, 9) +
               Chars(dump, 232, std::string_view("\0b", 2)))
      .End();
  const DuplicateStrings found = Find(dump);
  ASSERT_EQ(found.rows.size(), 1u);
  EXPECT_EQ(found.rows[0].text, "bc");
}

}  // namespace
}  // namespace heapprofd::hprof
