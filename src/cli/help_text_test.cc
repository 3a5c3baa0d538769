// What a table of flags becomes for people and for shells.
#include "cli/help_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/command_table.h"
#include "cli/commands.h"
#include "cli/completions.h"

namespace heapprofd {
namespace {

DescribedCommand Tool() {
  return {.text = {.name = "tool",
                   .summary = "Does it.",
                   .usage = "tool [OPTIONS]\ntool verb",
                   .words_title = "verbs",
                   .words = {{"verb", "Does it otherwise."}},
                   .epilogue = "The end.\n"},
          .flags = {{.letter = 'i',
                     .name = "interval",
                     .aliases = {"pause"},
                     .value_name = "BYTES",
                     .help = "Some [bytes]: it's all.",
                     .details = "More of it.",
                     .group = "how"},
                    {.name = "fast", .help = "Be quick.", .group = "how"},
                    {.name = "odd", .help = "Be odd.", .group = "how", .is_rare = true}}};
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(HelpTextTest, OnlyTheLongHelpHasDetails) {
  const std::string brief = ShortHelp(Tool());
  const std::string full = LongHelp(Tool());
  EXPECT_TRUE(Contains(brief, "usage: tool [OPTIONS]\n       tool verb"));
  EXPECT_TRUE(Contains(brief, "\nverbs:\n  verb  Does it otherwise.\n"));
  EXPECT_TRUE(Contains(brief, "\nmore options:\n  --odd\n"));
  EXPECT_TRUE(Contains(brief, "tool --help tells the rest."));
  EXPECT_FALSE(Contains(brief, "More of it."));
  EXPECT_FALSE(Contains(brief, "Be odd."));
  EXPECT_TRUE(Contains(full, "More of it."));
  EXPECT_TRUE(Contains(full, "Be odd."));
  EXPECT_TRUE(Contains(full, "The end."));
}

TEST(HelpTextTest, CompletionsQuoteWhatTheirShellWouldTake) {
  EXPECT_TRUE(Contains(Completions("zsh", {{Tool()}}).value(),
                       "[Some \\[bytes\\]\\: it'\\''s all.]"));
  EXPECT_TRUE(Contains(Completions("fish", {{Tool()}}).value(),
                       "-l interval -s i -x -d 'Some [bytes]: it\\'s all.'"));
}

// 48 lines of 80 columns.
void ExpectScreen(const DescribedCommand& command) {
  const std::string help = ShortHelp(command);
  EXPECT_LE(std::count(help.begin(), help.end(), '\n'), 48) << help;
  size_t column = 0;
  for (const char c : help) {
    column = c == '\n' ? 0 : column + 1;
    ASSERT_LE(column, 80u) << help;
  }
}

TEST(HelpTextTest, TheShortHelpOfEachCommandIsOneScreen) {
  ExpectScreen(WholeProgramHelp());
  for (const Command& command : kCommands) {
    SCOPED_TRACE(command.name);
    const CommandLine line = command.line();
    ExpectScreen(Described(line));
    EXPECT_EQ(line.text.name, std::string("heap_profile ") + command.name);
    EXPECT_TRUE(line.run);
  }
}

}  // namespace
}  // namespace heapprofd
