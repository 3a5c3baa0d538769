// What holds for every format.
#include "export/formats.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

namespace heapprofd {
namespace {

TEST(FormatsTest, EachHasANameOfItsOwnThatTheDocumentationTells) {
  std::ifstream file(std::string(HPD_SOURCES) + "/docs/terminal.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  std::set<std::string> names;
  std::set<std::string> suffixes;
  for (const ExportFormat& format : kExportFormats) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_TRUE(suffixes.insert(format.suffix).second) << format.suffix;
    EXPECT_NE(page.find("`" + std::string(format.name) + "`"), std::string::npos)
        << format.name;
  }
}

TEST(FormatsTest, AHeapWithoutAnythingHasAFileToo) {
  const TargetProfile profile;
  const HeapDump dump;
  for (const ExportFormat& format : kExportFormats)
    EXPECT_TRUE(std::string(format.name) == "folded" ||
                !format.encode({profile, dump}).empty())
        << format.name;
}

}  // namespace
}  // namespace heapprofd
