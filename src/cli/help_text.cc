#include "cli/help_text.h"

#include <algorithm>
#include <cstdint>

#include "cli/text_layout.h"

namespace heapprofd {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kColumn = 30;

enum class HelpLength : uint8_t { kShort, kLong };

std::string Spelling(const Flag& flag) {
  std::string text = flag.letter != 0 ? std::string("-") + flag.letter + ", " : "    ";
  text += "--" + flag.name;
  return flag.value_name.empty() ? text : text + " " + flag.value_name;
}

// A row of two columns.
std::string Row(std::string left, const std::string& right, size_t column) {
  left.insert(0, "  ");
  left += left.size() + 2 <= column ? std::string(column - left.size(), ' ')
                                    : "\n" + std::string(column, ' ');
  return left + Wrap(right, column, kWidth) + "\n";
}

std::string WordRows(const CommandText& text) {
  if (text.words.empty())
    return "";
  size_t longest = 0;
  for (const CommandWord& word : text.words)
    longest = std::max(longest, word.name.size());
  std::string rows = "\n" + text.words_title + ":\n";
  for (const CommandWord& word : text.words)
    rows += Row(word.name, word.help, longest + 4);
  return rows;
}

std::string FlagRows(const std::vector<Flag>& flags, HelpLength length) {
  std::string rows;
  std::string group;
  std::string rare;
  for (const Flag& flag : flags) {
    if (flag.is_rare && length == HelpLength::kShort) {
      rare += (rare.empty() ? "--" : " --") + flag.name;
      continue;
    }
    // One screen has no room for headlines.
    const std::string headline =
        length == HelpLength::kShort ? std::string("options") : flag.group;
    if (headline != group) {
      group = headline;
      rows += "\n" + group + ":\n";
    }
    rows += Row(Spelling(flag), flag.help, kColumn);
    if (length == HelpLength::kLong && !flag.details.empty())
      rows += std::string(kColumn, ' ') + Wrap(flag.details, kColumn, kWidth) + "\n";
  }
  return rare.empty() ? rows
                      : rows + "\nmore options:\n  " + Wrap(rare, 2, kWidth) + "\n";
}

bool HasMore(const DescribedCommand& command) {
  return !command.text.epilogue.empty() ||
         std::any_of(command.flags.begin(), command.flags.end(), [](const Flag& flag) {
           return flag.is_rare || !flag.details.empty();
         });
}

std::string Help(const DescribedCommand& command, HelpLength length) {
  const CommandText& text = command.text;
  std::string help = Wrap(text.summary, 0, kWidth) + "\n\nusage: ";
  for (const char c : text.usage)
    help += c == '\n' ? std::string("\n       ") : std::string(1, c);
  help += "\n" + WordRows(text) + FlagRows(command.flags, length);
  if (length == HelpLength::kShort)
    return HasMore(command) ? help + "\n" + text.name + " --help tells the rest.\n"
                            : help;
  return text.epilogue.empty() ? help : help + "\n" + text.epilogue;
}

}  // namespace

std::string ShortHelp(const DescribedCommand& command) {
  return Help(command, HelpLength::kShort);
}

std::string LongHelp(const DescribedCommand& command) {
  return Help(command, HelpLength::kLong);
}

}  // namespace heapprofd
