#include "cli/completions.h"

#include "base/text.h"

namespace heapprofd {
namespace {

bool TakesPath(const Flag& flag) {
  return flag.value_name == "DIRECTORY" || flag.value_name == "FILE" ||
         flag.value_name == "PATH" || flag.value_name == "DIR";
}

std::string WordsOf(const DescribedCommand& command) {
  std::string text;
  for (const CommandWord& word : command.text.words)
    text += (text.empty() ? "" : " ") + word.name;
  return text;
}

std::string ZshText(const std::string& text) {
  std::string escaped;
  for (const char c : text)
    escaped +=
        c == '[' || c == ']' || c == ':' ? std::string("\\") + c : std::string(1, c);
  return escaped;
}

std::string ZshFlags(const std::vector<Flag>& flags) {
  std::string text;
  for (const Flag& flag : flags) {
    std::string rest = "[" + ZshText(flag.help) + "]";
    if (!flag.value_name.empty())
      rest += ":" + ZshText(flag.value_name) + ":" + (TakesPath(flag) ? "_files" : " ");
    text += "  " +
            ShellQuoted("--" + flag.name + (flag.value_name.empty() ? "" : "=") + rest) +
            " \\\n";
    if (flag.letter != 0)
      text += "  " +
              ShellQuoted(std::string("-") + flag.letter +
                          (flag.value_name.empty() ? "" : "+") + rest) +
              " \\\n";
  }
  return text;
}

// `condition` begins with a blank, or is empty.
std::string FishFlags(const std::string& program,
                      const std::string& condition,
                      const std::vector<Flag>& flags) {
  std::string text;
  for (const Flag& flag : flags) {
    text.append("complete -c ").append(program).append(condition);
    text.append(" -l ").append(flag.name);
    if (flag.letter != 0)
      text += std::string(" -s ") + flag.letter;
    if (!flag.value_name.empty())
      text += TakesPath(flag) ? " -r -F" : " -x";
    std::string help;
    for (const char c : flag.help)
      help += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    text += " -d '" + help + "'\n";
  }
  return text;
}

// `words` are lines for the first arguments that are no flags, `rest` is for the others.
std::string ZshArguments(const DescribedCommand& command,
                         const std::string& words,
                         const std::string& rest) {
  return "_arguments -S \\\n" + ZshFlags(command.flags) + words + "  " +
         ShellQuoted(rest) + "\n";
}

std::string ZshWords(const std::string& which, const DescribedCommand& command) {
  const std::string words = WordsOf(command);
  return words.empty() ? "" : "  " + ShellQuoted(which + ":(" + words + ")") + " \\\n";
}

std::string ZshProgram(const CompletedProgram& program) {
  const DescribedCommand& whole = program.described;
  if (program.commands.empty())
    return ZshArguments(whole, ZshWords("1:word", whole), "*:file:_files");
  std::string text = "case $words[2] in\n";
  for (const CompletedCommand& command : program.commands)
    text += command.word + ")\n" +
            ZshArguments(command.described,
                         "  " + ShellQuoted("1:verb:") + " \\\n" +
                             ZshWords("2:word", command.described),
                         "*:file:_files") +
            ";;\n";
  return text + "*)\n" +
         ZshArguments(whole, ZshWords("1:verb", whole), "*::program:_normal") +
         ";;\nesac\n";
}

// What may stand where no flag is.
std::string FishWords(const std::string& program,
                      const std::string& condition,
                      const DescribedCommand& command) {
  const std::string words = WordsOf(command);
  return words.empty() ? ""
                       : std::string("complete -c ")
                             .append(program)
                             .append(condition)
                             .append(" -a '" + words + "'\n");
}

std::string FishProgram(const CompletedProgram& program) {
  const std::string& name = program.described.text.name;
  std::string text = FishFlags(name, "", program.described.flags) +
                     FishWords(name, " -n __fish_use_subcommand", program.described);
  for (const CompletedCommand& command : program.commands) {
    const std::string condition =
        " -n '__fish_seen_subcommand_from " + command.word + "'";
    text += FishWords(name, condition, command.described) +
            FishFlags(name, condition, command.described.flags);
  }
  return text;
}

}  // namespace

Result<std::string> Completions(const std::string& shell,
                                const std::vector<CompletedProgram>& programs) {
  std::string text;
  if (shell == "zsh") {
    text = "#compdef";
    for (const CompletedProgram& program : programs)
      text += " " + program.described.text.name;
    text += "\ncase $service in\n";
    for (const CompletedProgram& program : programs)
      text += program.described.text.name + ")\n" + ZshProgram(program) + ";;\n";
    return text + "esac\n";
  }
  if (shell != "fish")
    return Invalid("cannot generate " + shell + ": use zsh or fish");
  for (const CompletedProgram& program : programs)
    text += FishProgram(program);
  return text;
}

}  // namespace heapprofd
