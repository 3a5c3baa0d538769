#include "cli/inspect/suppressions.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace heapprofd {
namespace {

using FunctionRows = std::vector<uint32_t>;

TEST(SuppressionsTest, PatternsAreThoseOfLeakSanitizer) {
  EXPECT_TRUE(MatchesPattern("bar", "foobarbaz"));
  EXPECT_FALSE(MatchesPattern("bar", "foobaz"));
  EXPECT_TRUE(MatchesPattern("foo*bar", "a foo and a bar."));
  EXPECT_FALSE(MatchesPattern("foo*bar", "bar foo"));
  EXPECT_TRUE(MatchesPattern("^foo", "foobar"));
  EXPECT_FALSE(MatchesPattern("^bar", "foobar"));
  EXPECT_TRUE(MatchesPattern("bar$", "foobar"));
  EXPECT_FALSE(MatchesPattern("foo$", "foobar"));
  EXPECT_TRUE(MatchesPattern("^foo*bar$", "foo or bar"));
  EXPECT_FALSE(MatchesPattern("^foo$", "foofoo"));
  EXPECT_TRUE(MatchesPattern("^foo$", "foo"));
  EXPECT_TRUE(MatchesPattern("a*b*c$", "abbc bc"));
  EXPECT_FALSE(MatchesPattern("aba*aba$", "ababa"));  // nothing serves twice
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_FALSE(MatchesPattern("x", ""));
}

TEST(SuppressionsTest, CommentsAndEmptyLinesMeanNothing) {
  const auto parsed =
      ParseSuppressions("# known\n\n  leak:Cache::Fill \r\nleak:libfoo.so\n", "s");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  ASSERT_EQ(parsed.value().size(), 2u);
  EXPECT_EQ(parsed.value()[0].pattern, "Cache::Fill");
  EXPECT_EQ(parsed.value()[1].pattern, "libfoo.so");
}

TEST(SuppressionsTest, OtherLinesAreErrorsWithTheirNumber) {
  for (const char* text : {"leak:a\nrace:b\n", "leak:a\nleak:\n", "leak:a\nfoo"})
    EXPECT_EQ(ParseSuppressions(text, "s").status().message(),
              "cannot read suppressions s: line 2 is neither leak:PATTERN nor a comment "
              "(#)");
}

TEST(SuppressionsTest, FunctionsAndModulesAreLookedAtAndCounted) {
  std::vector<Suppression> suppressions = {{.pattern = "Fill"}, {.pattern = "libfoo.so"}};
  const StackFunction fill{.name = "Cache::Fill(int)", .module = "a", .label = "Fill"};
  const StackFunction nameless{
      .name = "", .module = "libfoo.so", .label = "libfoo.so+0x1"};
  const StackFunction other{.name = "main", .module = "a", .label = "main"};
  std::vector<StackFunction> functions = {other, fill};
  Suppressor suppressor(&suppressions);
  EXPECT_EQ(suppressor.Suppress(FunctionRows{0}, functions, 100), nullptr);
  functions.push_back(nameless);
  EXPECT_EQ(suppressor.Suppress(FunctionRows{0, 1, 2}, functions, 10), &suppressions[0]);
  EXPECT_EQ(suppressor.Suppress(FunctionRows{2, 0}, functions, 5), &suppressions[1]);
  EXPECT_EQ(suppressor.Suppress(FunctionRows{2, 0}, functions, 5), &suppressions[1]);
  EXPECT_EQ(suppressions[0].stacks, 1u);
  EXPECT_EQ(suppressions[1].stacks, 2u);
  EXPECT_EQ(suppressions[1].bytes, 10);
}

TEST(SuppressionsTest, PathsOfModulesAndSourceFilesAreLookedAt) {
  const StackFunction grow{.name = "Grow()",
                           .module = "grow",
                           .label = "Grow",
                           .path = "/opt/x/bin/grow",
                           .source = "/src/x/grow.cc"};
  const StackFunction elsewhere{
      .name = "Grow()", .module = "grow", .label = "Grow", .path = "/opt/y/bin/grow"};
  for (const char* const pattern :
       {"*/x/bin/grow$", "/opt/x/bin/grow", "^/opt/x", "src/x/grow.cc", "^grow$"}) {
    std::vector<Suppression> suppressions = {{.pattern = pattern}};
    EXPECT_NE(Suppressor(&suppressions).Suppress(FunctionRows{0}, {grow}, 1), nullptr)
        << pattern;
  }
  std::vector<Suppression> suppressions = {{.pattern = "/x/bin/grow"}};
  Suppressor suppressor(&suppressions);
  EXPECT_NE(suppressor.Suppress(FunctionRows{0}, {grow, elsewhere}, 1), nullptr);
  EXPECT_EQ(suppressor.Suppress(FunctionRows{1}, {grow, elsewhere}, 1), nullptr);
}

TEST(SuppressionsTest, AFileThatIsNotThereIsAnError) {
  EXPECT_EQ(ReadSuppressions("/nonexistent/s").status().message(),
            "cannot read suppressions /nonexistent/s: No such file or directory; check "
            "--suppressions");
}

TEST(SuppressionsTest, AFileThatIsTooLargeIsAnError) {
  const std::string path = testing::TempDir() + "large.supp";
  std::ofstream(path) << std::string((size_t{1} << 20) + 1, '#');
  const std::string message = ReadSuppressions(path).status().message();
  EXPECT_NE(message.find("it is larger than 1 MiB; check --suppressions"),
            std::string::npos)
      << message;
  EXPECT_EQ(remove(path.c_str()), 0);
}

}  // namespace
}  // namespace heapprofd
