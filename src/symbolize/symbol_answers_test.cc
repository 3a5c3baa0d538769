#include "symbolize/symbol_answers.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

SymbolAnswers TableOf(uint64_t address, const std::vector<SourceLine>& lines) {
  SymbolAnswers table;
  std::vector<SymbolAnswers::Line> ids;
  for (const SourceLine& line : lines)
    ids.push_back({.function = table.Intern(line.function),
                   .system_name = table.Intern(line.system_name),
                   .file = table.Intern(line.file),
                   .line = line.line});
  table.Add(address, ids);
  return table;
}

std::string Encode(const SymbolAnswers& table) {
  std::string bytes;
  table.EncodeTo(bytes);
  return bytes;
}

std::string FirstFunction(const SymbolAnswers& table, uint64_t address) {
  const auto lines = table.Find(address);
  if (!lines)
    return "(no answer)";
  return lines->empty() ? "(unknown)" : table.ToSourceLines(*lines)[0].function;
}

const std::vector<SourceLine> kTwoLines = {
    {.function = "inner", .system_name = "", .file = "a.h", .line = 3},
    {.function = "outer()", .system_name = "_Z5outerv", .file = "a.cc", .line = 7}};

TEST(SymbolAnswersTest, WhatIsEncodedIsDecoded) {
  const auto decoded = SymbolAnswers::Decode(Encode(TableOf(0x10, kTwoLines)));
  ASSERT_TRUE(decoded.has_value());
  const auto lines = decoded->ToSourceLines(decoded->Find(0x10).value());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].function, "inner");
  EXPECT_EQ(lines[1].system_name, "_Z5outerv");
  EXPECT_EQ(lines[1].file, "a.cc");
  EXPECT_EQ(lines[1].line, 7u);
}

TEST(SymbolAnswersTest, NoNameIsAnAnswerToo) {
  const auto decoded = SymbolAnswers::Decode(Encode(TableOf(0x10, {})));
  EXPECT_EQ(FirstFunction(*decoded, 0x10), "(unknown)");
  EXPECT_EQ(FirstFunction(*decoded, 0x11), "(no answer)");
}

TEST(SymbolAnswersTest, MergingKeepsItsOwnAnswersAndTakesTheOthers) {
  SymbolAnswers table = SymbolAnswers::Decode(Encode(TableOf(1, kTwoLines))).value();
  SymbolAnswers other = TableOf(2, {kTwoLines[1]});
  other.Add(1, {});
  table.Merge(other);
  EXPECT_EQ(FirstFunction(table, 1), "inner");
  EXPECT_EQ(FirstFunction(table, 2), "outer()");
}

TEST(SymbolAnswersTest, ASubsetHasTheAddressesAskedForOnly) {
  SymbolAnswers table = TableOf(1, kTwoLines);
  table.Merge(TableOf(2, kTwoLines));
  const std::vector<uint64_t> wanted = {2, 3};
  const SymbolAnswers subset = table.Subset(wanted);
  EXPECT_EQ(subset.size(), 1u);
  EXPECT_EQ(FirstFunction(subset, 2), "inner");
}

TEST(SymbolAnswersTest, EveryTruncationIsNoticed) {
  const std::string bytes = Encode(TableOf(0x10, kTwoLines));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(SymbolAnswers::Decode(bytes.substr(0, size)).has_value()) << size;
  EXPECT_FALSE(SymbolAnswers::Decode(bytes + "x").has_value());
}

}  // namespace
}  // namespace heapprofd
