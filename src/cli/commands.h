// Which command a command line means, and what is made of the table of all of them.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command_line.h"

namespace heapprofd {

// The names of kCommands, and what recordings understand beside them.
std::vector<std::string> CommandNames();

// Whether it is one of these.
bool IsCommandName(const std::string& word);

// heap_profile itself: a recording, with the list of commands.
DescribedCommand WholeProgramHelp();

// Text made from the tables: "zsh" or "fish".
Result<std::string> GeneratedText(const std::string& what);

// Runs what the program's name or else the first word chooses, a recording when neither
// does; gives the exit code.
int RunHeapProfile(const std::string& program, const Words& arguments);

}  // namespace heapprofd
