// The one way from a command line to what it asks for: every command, and every program
// that is this one under another name, describes itself by a CommandLine and is run by
// RunCommandLine(), which knows -h, --help and --version, and what the wrong ones are
// told.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/exit_code.h"
#include "cli/flag_table.h"
#include "cli/help_text.h"

namespace heapprofd {

using Words = std::vector<std::string>;

struct CommandLine {
  CommandText text;         // errors are lines of the name
  std::vector<Flag> flags;  // without those that all commands have
  // Takes what is no flag; empty: there must be nothing.
  std::function<Status(const std::string&)> take_word = {};
  // Takes what stands behind "--", which was there; empty: these are words.
  std::function<Status(const Words&)> take_rest = {};
  // Does it; gives the exit code.
  std::function<Result<int>()> run = {};
  char version_letter = 0;          // that stands for --version; 0: none
  int failure_code = kExitFailure;  // of errors that are not the command line's
};

// With the flags that all commands have.
DescribedCommand Described(const CommandLine& line);

// A function that adds what is no flag to `words`.
std::function<Status(const std::string&)> TakeWords(Words* words);

// Parses and runs; `arguments` begin behind what chose the command. Gives the exit code.
int RunCommandLine(const CommandLine& line, const Words& arguments);

}  // namespace heapprofd
