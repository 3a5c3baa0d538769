#include "cli/command_line.h"

#include <algorithm>
#include <cstddef>

#include "base/print.h"
#include "cli/flag_values.h"

namespace heapprofd {
namespace {

struct Asked {
  bool help = false;
  bool version = false;
};

// What every command has.
void AddCommonFlags(const CommandLine& line, Asked* asked, std::vector<Flag>* flags) {
  const std::string group = "help";
  flags->push_back({.letter = 'h',
                    .name = "help",
                    .help = "Show help: -h in short, --help in full.",
                    .group = group,
                    .apply = Switch(&asked->help)});
  flags->push_back({.letter = line.version_letter,
                    .name = "version",
                    .help = "Show the version.",
                    .group = group,
                    .apply = Switch(&asked->version)});
}

Status RefuseWord(const CommandLine& line, const std::string& word) {
  return Invalid("cannot understand \"" + word + "\": it is no option; " +
                 line.text.name + " --help lists all");
}

Status TakeRest(const CommandLine& line, const Words& rest) {
  if (line.take_rest)
    return line.take_rest(rest);
  for (const std::string& word : rest)
    HPD_TRY(line.take_word ? line.take_word(word) : RefuseWord(line, word));
  return {};
}

// Up to `end` of the arguments: the table knows one help, how it was asked for tells
// which.
void PrintHelp(const DescribedCommand& command, const Words& arguments, size_t end) {
  const auto last = arguments.begin() + static_cast<ptrdiff_t>(end);
  const bool is_short = std::find(arguments.begin(), last, "-h") != last;
  PrintText(is_short ? ShortHelp(command) : LongHelp(command));
}

Result<int> Run(const CommandLine& line, const Words& arguments) {
  Asked asked;
  DescribedCommand command{line.text, line.flags};
  AddCommonFlags(line, &asked, &command.flags);
  HPD_TRY_ASSIGN(const size_t end,
                 ParseFlags(command.flags, arguments, [&](const std::string& word) {
                   return line.take_word ? line.take_word(word) : RefuseWord(line, word);
                 }));
  if (asked.help) {
    PrintHelp(command, arguments, end);
    return static_cast<int>(kExitOk);
  }
  if (asked.version) {
    Print(stdout, "%s %s\n", line.text.name.c_str(), HPD_VERSION);
    return static_cast<int>(kExitOk);
  }
  if (end > 0 && arguments[end - 1] == "--")
    HPD_TRY(TakeRest(line,
                     {arguments.begin() + static_cast<ptrdiff_t>(end), arguments.end()}));
  return line.run();
}

}  // namespace

DescribedCommand Described(const CommandLine& line) {
  static Asked nobody;  // nothing is parsed by these
  DescribedCommand command{line.text, line.flags};
  AddCommonFlags(line, &nobody, &command.flags);
  return command;
}

std::function<Status(const std::string&)> TakeWords(Words* words) {
  return [words](const std::string& word) {
    words->push_back(word);
    return Status();
  };
}

int RunCommandLine(const CommandLine& line, const Words& arguments) {
  const Result<int> result = Run(line, arguments);
  if (result.ok())
    return result.value();
  const int code = Fail(result.status(), line.text.name.c_str());
  return code == kExitFailure ? line.failure_code : code;
}

}  // namespace heapprofd
