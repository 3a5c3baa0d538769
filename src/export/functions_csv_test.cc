#include <gtest/gtest.h>

#include "export/formats.h"

namespace heapprofd {
namespace {

// What allocates in a function of this name.
std::string CsvOf(const std::string& function) {
  TargetProfile profile;
  profile.mappings.emplace_back().path = "/lib/x.so";
  profile.frames = {
      Frame{.mapping = 0, .rel_pc = 1, .lines = {{function, function, "x.c", 3}}}};
  profile.callsites = {{.parent = kNoId, .frame = 0}};
  profile.heaps.emplace_back().callsites[0].allocated = {.bytes = 8, .count = 1};
  return EncodeFunctionsCsv({profile, profile.heaps[0]});
}

TEST(FunctionsCsvTest, QuotesAndCommasStayInTheirCell) {
  EXPECT_EQ(CsvOf("f(\"a\", int)"),
            "function,module,place,itself,total\n"
            "\"f(\"\"a\"\", int)\",\"/lib/x.so\",\"x.c:3\",8,8\n");
}

TEST(FunctionsCsvTest, NoNameIsAFormulaOfASpreadsheet) {
  for (const char* const name : {"=cmd()", "+1", "-1", "@SUM(A1)", "\tx", "\rx"})
    EXPECT_NE(CsvOf(name).find(std::string("\n\"'") + name + "\","), std::string::npos)
        << CsvOf(name);
  EXPECT_NE(CsvOf("operator=").find("\n\"operator=\","), std::string::npos);
  EXPECT_NE(CsvOf("").find("\n\""), std::string::npos);
}

}  // namespace
}  // namespace heapprofd
