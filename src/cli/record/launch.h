// Starts the program to be profiled.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace heapprofd {

struct LaunchError {
  int exit_code = 0;
  std::string message;
};

struct Launched {
  pid_t pid = -1;
  LaunchError error;  // set when pid < 0
};

// `environment_of` is asked, in the new process, for the value of the session variable;
// `preload` goes in front of what LD_PRELOAD holds already; `signal_mask` is the
// program's, and with `ignores_interrupt` it begins with SIGINT ignored, so that a
// terminal's Ctrl-C is for us alone. Returns when the program's image is running, or
// could not be.
Launched Launch(const std::vector<std::string>& command,
                const std::string& preload,
                const sigset_t& signal_mask,
                const std::function<std::string(pid_t)>& environment_of,
                bool ignores_interrupt = false);

// The preload library that belongs to this executable: beside it, in ../lib/heapprofd, or
// in the build tree.
Result<std::string> FindPreloadLibrary();

}  // namespace heapprofd
