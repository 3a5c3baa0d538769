#include "cli/commands.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "cli/command_table.h"
#include "cli/completions.h"
#include "cli/record/record_command.h"

namespace heapprofd {
namespace {

const Command* Find(std::span<const Command> commands, const std::string& name) {
  const auto found =
      std::find_if(commands.begin(), commands.end(),
                   [&](const Command& command) { return command.name == name; });
  return found == commands.end() ? nullptr : &*found;
}

// The recording, with the list of the commands.
CommandLine WholeProgram() {
  CommandLine line = RecordingLine();
  line.text.words_title = "commands";
  for (const Command& command : kCommands)
    line.text.words.push_back({command.name, command.summary});
  return line;
}

// "help query" is "query --help".
Result<int> TellHelp(const Words& words) {
  if (words.size() > 1)
    return Invalid("cannot help with \"" + words[1] +
                   "\": help takes one command; ask for each by itself");
  if (words.empty())
    return RunCommandLine(WholeProgram(), {"--help"});
  if (const Command* const command = Find(kCommands, words[0]))
    return RunCommandLine(command->line(), {"--help"});
  if (IsCommandName(words[0]))
    return RunCommandLine(WholeProgram(), {"--help"});  // of which these are a part
  return Invalid("cannot help with \"" + words[0] + "\": there is no such command; " +
                 DidYouMean(words[0], CommandNames(), "heap_profile --help lists them"));
}

CommandLine HelpLine() {
  const auto words = std::make_shared<Words>();
  return {.text = {.name = "heap_profile help",
                   .summary = "Shows the help of a command, or of heap_profile itself.",
                   .usage = "heap_profile help [COMMAND]",
                   .epilogue = ""},
          .flags = {},
          .take_word = TakeWords(words.get()),
          .run = [words] { return TellHelp(*words); }};
}

}  // namespace

std::vector<std::string> CommandNames() {
  std::vector<std::string> names = {"host", "android", "help"};
  for (const Command& command : kCommands)
    names.push_back(command.name);
  return names;
}

bool IsCommandName(const std::string& word) {
  const std::vector<std::string> names = CommandNames();
  return std::find(names.begin(), names.end(), word) != names.end();
}

DescribedCommand WholeProgramHelp() {
  return Described(WholeProgram());
}

Result<std::string> GeneratedText(const std::string& what) {
  CompletedProgram whole = {.described = WholeProgramHelp()};
  for (const Command& command : kCommands)
    whole.commands.push_back({command.name, Described(command.line())});
  for (const char* word : {"host", "android"})
    whole.described.text.words.push_back({word, ""});
  std::vector<CompletedProgram> programs = {std::move(whole)};
  for (const Command& program : kPrograms)
    programs.push_back({.described = Described(program.line())});
  return Completions(what, programs);
}

int RunHeapProfile(const std::string& program, const Words& arguments) {
  if (const Command* const named = Find(kPrograms, program))
    return RunCommandLine(named->line(), arguments);
  if (arguments.empty())
    return RunCommandLine(WholeProgram(), arguments);
  const Words rest(arguments.begin() + 1, arguments.end());
  if (const Command* const command = Find(kCommands, arguments[0]))
    return RunCommandLine(command->line(), rest);
  return RunCommandLine(arguments[0] == "help" ? HelpLine() : WholeProgram(),
                        arguments[0] == "help" ? rest : arguments);
}

}  // namespace heapprofd
