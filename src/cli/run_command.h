// Runs another program to its end and takes what it says.
#pragma once

#include <signal.h>

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace heapprofd {

struct CommandResult {
  int exit_code = -1;
  std::string output;
};

// Asked when `fd` (-1: there is none) becomes readable, and every second: whether the
// program is to be killed.
struct Impatience {
  int fd = -1;
  std::function<bool()> is_over = nullptr;
};

// `command`: the program, looked up in PATH, and its arguments. Takes its standard output
// without trailing blanks, at most 64 KiB of it. It runs with this signal mask and in a
// process group of its own: Ctrl-C at the terminal is for us. kTryAgain: it was killed.
Result<CommandResult> RunCommand(const std::vector<std::string>& command,
                                 const sigset_t& mask,
                                 const Impatience& impatience = {});

}  // namespace heapprofd
