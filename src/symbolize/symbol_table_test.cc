#include "symbolize/symbol_table.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

SymbolTable TableOf(uint64_t address, const std::vector<SourceLine>& lines) {
  SymbolTable table;
  std::vector<SymbolTable::Line> ids;
  for (const SourceLine& line : lines)
    ids.push_back({.function = table.Intern(line.function),
                   .system_name = table.Intern(line.system_name),
                   .file = table.Intern(line.file),
                   .line = line.line});
  table.Add(address, ids);
  return table;
}

std::string Encode(const SymbolTable& table) {
  std::string bytes;
  table.EncodeTo(bytes);
  return bytes;
}

std::string FirstFunction(const SymbolTable& table, uint64_t address) {
  const auto lines = table.Find(address);
  if (!lines)
    return "(no answer)";
  return lines->empty() ? "(unknown)" : table.ToSourceLines(*lines)[0].function;
}

const std::vector<SourceLine> kTwoLines = {
    {.function = "inner", .system_name = "", .file = "a.h", .line = 3},
    {.function = "outer()", .system_name = "_Z5outerv", .file = "a.cc", .line = 7}};

TEST(SymbolTableTest, WhatIsEncodedIsDecoded) {
  const auto decoded = SymbolTable::Decode(Encode(TableOf(0x10, kTwoLines)));
  ASSERT_TRUE(decoded.has_value());
  const auto lines = decoded->ToSourceLines(decoded->Find(0x10).value());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].function, "inner");
  EXPECT_EQ(lines[1].system_name, "_Z5outerv");
  EXPECT_EQ(lines[1].file, "a.cc");
  EXPECT_EQ(lines[1].line, 7u);
}

TEST(SymbolTableTest, NoNameIsAnAnswerToo) {
  const auto decoded = SymbolTable::Decode(Encode(TableOf(0x10, {})));
  EXPECT_EQ(FirstFunction(*decoded, 0x10), "(unknown)");
  EXPECT_EQ(FirstFunction(*decoded, 0x11), "(no answer)");
}

TEST(SymbolTableTest, MergingKeepsItsOwnAnswersAndTakesTheOthers) {
  SymbolTable table = SymbolTable::Decode(Encode(TableOf(1, kTwoLines))).value();
  SymbolTable other = TableOf(2, {kTwoLines[1]});
  other.Add(1, {});
  table.Merge(other);
  EXPECT_EQ(FirstFunction(table, 1), "inner");
  EXPECT_EQ(FirstFunction(table, 2), "outer()");
}

TEST(SymbolTableTest, ASubsetHasTheAddressesAskedForOnly) {
  SymbolTable table = TableOf(1, kTwoLines);
  table.Merge(TableOf(2, kTwoLines));
  const std::vector<uint64_t> wanted = {2, 3};
  const SymbolTable subset = table.Subset(wanted);
  EXPECT_EQ(subset.size(), 1u);
  EXPECT_EQ(FirstFunction(subset, 2), "inner");
}

TEST(SymbolTableTest, EveryTruncationIsNoticed) {
  const std::string bytes = Encode(TableOf(0x10, kTwoLines));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(SymbolTable::Decode(bytes.substr(0, size)).has_value()) << size;
  EXPECT_FALSE(SymbolTable::Decode(bytes + "x").has_value());
}

}  // namespace
}  // namespace heapprofd
