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

}  // namespace

std::string ZshCompletion(const DescribedCommand& program,
                          const std::vector<CompletedCommand>& commands) {
  std::string text = "#compdef " + program.text.name + "\ncase $words[2] in\n";
  for (const CompletedCommand& command : commands) {
    const std::string words = WordsOf(command.described);
    text +=
        command.word + ")\n_arguments -S \\\n" + ZshFlags(command.described.flags) +
        "  " + ShellQuoted("1:verb:") + " \\\n" +
        (words.empty() ? "" : "  " + ShellQuoted("2:word:(" + words + ")") + " \\\n") +
        "  " + ShellQuoted("*:file:_files") + "\n;;\n";
  }
  return text + "*)\n_arguments -S \\\n" + ZshFlags(program.flags) + "  " +
         ShellQuoted("1:verb:(" + WordsOf(program) + ")") + " \\\n  " +
         ShellQuoted("*::program:_normal") + "\n;;\nesac\n";
}

std::string FishCompletion(const DescribedCommand& program,
                           const std::vector<CompletedCommand>& commands) {
  const std::string& name = program.text.name;
  std::string text = "# fish completion for " + name + "\n" +
                     FishFlags(name, "", program.flags) + "complete -c " + name +
                     " -n __fish_use_subcommand -a '" + WordsOf(program) + "'\n";
  for (const CompletedCommand& command : commands) {
    const std::string condition =
        " -n '__fish_seen_subcommand_from " + command.word + "'";
    const std::string words = WordsOf(command.described);
    if (!words.empty())
      text.append("complete -c ")
          .append(name)
          .append(condition)
          .append(" -a '")
          .append(words)
          .append("'\n");
    text += FishFlags(name, condition, command.described.flags);
  }
  return text;
}

}  // namespace heapprofd
