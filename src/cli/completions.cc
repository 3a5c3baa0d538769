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

// A branch of bash's "case", "" when there is no pattern.
std::string BashBranch(const std::string& pattern, const std::string& action) {
  return pattern.empty() ? "" : "    " + pattern + ") " + action + " ;;\n";
}

// Completes what may follow `previous`, or the command's words.
std::string BashBody(const DescribedCommand& command, bool takes_files) {
  std::string words = WordsOf(command);
  std::string path_flags;
  std::string value_flags;
  for (const Flag& flag : command.flags) {
    words += (words.empty() ? "--" : " --") + flag.name;
    if (flag.value_name.empty())
      continue;
    std::string& list = TakesPath(flag) ? path_flags : value_flags;
    list += (list.empty() ? "" : "|") + ("--" + flag.name);
    if (flag.letter != 0)
      list += std::string("|-") + flag.letter;
  }
  return "  case $previous in\n" +
         BashBranch(path_flags, "COMPREPLY=($(compgen -f -- \"$current\")); return") +
         BashBranch(value_flags, "return") + "    *) ;;\n  esac\n" +
         "  COMPREPLY=($(compgen " + (takes_files ? "-f " : "") + "-W " +
         ShellQuoted(words) + " -- \"$current\"))\n";
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
    text += "complete -c " + program + condition + " -l " + flag.name;
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

std::string BashCompletion(const DescribedCommand& program,
                           const std::vector<CompletedCommand>& commands) {
  const std::string function = "_" + program.text.name;
  std::string text = "# bash completion for " + program.text.name + "\n";
  for (const CompletedCommand& command : commands)
    text += function + "_" + command.word + "() {\n" +
            BashBody(command.described, /*takes_files=*/true) + "}\n";
  text +=
      function +
      "() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} "
      "i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
      "      COMPREPLY=($(compgen -c -f -- \"$current\"))\n"
      "      return\n"
      "    fi\n"
      "  done\n";
  std::string words;
  for (const CompletedCommand& command : commands)
    words += (words.empty() ? "" : "|") + command.word;
  if (!words.empty())
    text +=
        "  if ((COMP_CWORD > 1)); then\n"
        "    case ${COMP_WORDS[1]} in\n"
        "      " +
        words + ") \"" + function +
        "_${COMP_WORDS[1]}\"; return ;;\n"
        "    esac\n"
        "  fi\n";
  return text + BashBody(program, /*takes_files=*/false) + "}\ncomplete -F " + function +
         " " + program.text.name + "\n";
}

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
      text += "complete -c " + name + condition + " -a '" + words + "'\n";
    text += FishFlags(name, condition, command.described.flags);
  }
  return text;
}

}  // namespace heapprofd
