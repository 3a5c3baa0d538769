#include "profile/figures.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace heapprofd {
namespace {

std::string Text(const std::string& path) {
  std::ifstream file(std::string(HPD_SOURCES) + "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(FiguresTest, EachIsThereOnce) {
  std::set<std::string> names;
  std::set<uint32_t> fields;
  Quality quality;
  for (const Figure& figure : kFigures) {
    EXPECT_TRUE(names.insert(figure.name).second) << figure.name;
    EXPECT_TRUE(fields.insert(figure.field).second) << figure.name;
    quality.*figure.value += 1;
  }
  for (const Figure& figure : kFigures)
    EXPECT_EQ(quality.*figure.value, 1u) << figure.name;
}

TEST(FiguresTest, TheSchemaAndTheDocumentationTellTheSame) {
  const std::string schema = Text("proto/trace.proto");
  const std::string page = Text("docs/sql.md");
  ASSERT_FALSE(schema.empty() || page.empty());
  for (const Figure& figure : kFigures) {
    const std::string name = figure.name;
    const std::string field =
        "optional uint64 " + name + " = " + std::to_string(figure.field) + ";";
    EXPECT_NE(schema.find(field), std::string::npos) << field;
    const std::string row = "| `" + name + "` | " + figure.meaning + " |";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
  for (const HeapCount& count : kHeapCounts) {
    EXPECT_NE(schema.find(" = " + std::to_string(count.field) + ";"), std::string::npos)
        << count.column;
    EXPECT_NE(page.find(std::string(", ") + count.column), std::string::npos)
        << count.column;
  }
}

TEST(FiguresTest, TheSumOfProcessesIsTheSumOfEach) {
  Quality sum;
  Quality one;
  uint64_t value = 0;
  for (const Figure& figure : kFigures)
    one.*figure.value = ++value;
  one.unwind_times.back() = 7;
  sum += one;
  sum += one;
  value = 0;
  for (const Figure& figure : kFigures)
    EXPECT_EQ(sum.*figure.value, 2 * ++value) << figure.name;
  EXPECT_EQ(sum.unwind_times.back(), 14u);
}

}  // namespace
}  // namespace heapprofd
