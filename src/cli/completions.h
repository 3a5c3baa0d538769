// What zsh and fish complete of the command lines of programs, as scripts of theirs, from
// the tables of flags of the programs and their commands. Bash asks the commands themselves
// (packaging/heap_profile.bash).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/help_text.h"

namespace heapprofd {

// A command with the word that chooses it: "query".
struct CompletedCommand {
  std::string word;
  DescribedCommand described;
};

// Its words may stand where no flag is; behind one of its commands, that one's words and
// flags, and files.
struct CompletedProgram {
  DescribedCommand described;
  std::vector<CompletedCommand> commands = {};
};

// `shell`: zsh or fish.
Result<std::string> Completions(const std::string& shell,
                                const std::vector<CompletedProgram>& programs);

}  // namespace heapprofd
