// Runs another program to its end and takes what it says.
#pragma once

#include <signal.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace heapprofd {

struct CommandResult {
  int exit_code = -1;
  std::string output;
};

// `command`: the program, looked up in PATH, and its arguments. Takes its standard output
// without trailing blanks, at most 64 KiB of it. It runs with this signal mask and in a
// process group of its own: Ctrl-C at the terminal is for us.
Result<CommandResult> RunCommand(const std::vector<std::string>& command,
                                 const sigset_t& mask);

}  // namespace heapprofd
