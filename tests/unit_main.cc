// main() of the unit tests of a folder, which are one program: `engine_tests --file=fair_turn_test.cc` runs those of one
// source. That is how ctest runs them, so that a failure names a file, and what one source leaves in its process
// (environment, limits, children) reaches no other. Without --file all run in one process, which some of
// them do not bear; flags and GTEST_FILTER are GoogleTest's.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

std::string_view FileOf(const testing::TestInfo& test) {
  const std::string_view path = test.file();
  return path.substr(path.rfind('/') + 1);  // of npos, too
}

// The suites of a source, as a filter: "A.*:B.*"; empty when there are none or one of them is also another source's.
std::string SuitesOf(std::string_view file) {
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  std::string filter;
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *tests.GetTestSuite(i);
    int of_file = 0;
    for (int j = 0; j < suite.total_test_count(); ++j)
      of_file += FileOf(*suite.GetTestInfo(j)) == file;
    if (of_file == 0)
      continue;
    if (of_file != suite.total_test_count()) {
      fprintf(stderr,
              "cannot run the tests of %s: %s has tests in other sources; rename it\n",
              std::string(file).c_str(), suite.name());
      return "";
    }
    filter += (filter.empty() ? "" : ":") + std::string(suite.name()) + ".*";
  }
  if (filter.empty())
    fprintf(stderr, "cannot run the tests of %s: it has none\n",
            std::string(file).c_str());
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kFile = "--file=";
  if (argc == 2 && std::string_view(argv[1]).substr(0, kFile.size()) == kFile) {
    const std::string suites = SuitesOf(std::string_view(argv[1]).substr(kFile.size()));
    if (suites.empty())
      return 1;
    const std::string given =
        testing::GTEST_FLAG(filter);  // what GTEST_FILTER leaves out stays out
    const size_t left_out = given.find('-');
    testing::GTEST_FLAG(filter) =
        suites + (left_out == std::string::npos ? "" : given.substr(left_out));
  } else if (argc != 1) {
    fprintf(stderr, "usage: %s [--file=SOURCE_test.cc] [flags of GoogleTest]\n", argv[0]);
    return 2;
  }
  return RUN_ALL_TESTS();
}
