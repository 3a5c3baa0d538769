// What zsh and fish complete of a program's command line, as scripts of theirs, from the
// tables of flags of the program and its commands. Bash asks the commands themselves
// (packaging/heap_profile.bash).
#pragma once

#include <string>
#include <vector>

#include "cli/help_text.h"

namespace heapprofd {

// A command with the word that chooses it: "query".
struct CompletedCommand {
  std::string word;
  DescribedCommand described;
};

// `program`'s words may stand where no flag is; behind one of `commands`, that one's
// words and flags, and files.
std::string ZshCompletion(const DescribedCommand& program,
                          const std::vector<CompletedCommand>& commands);
std::string FishCompletion(const DescribedCommand& program,
                           const std::vector<CompletedCommand>& commands);

}  // namespace heapprofd
