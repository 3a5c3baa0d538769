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

struct LaunchSignals {
  sigset_t mask;  // the program's
  int fd = -1;    // becomes readable when a signal has come for whoever launches
};

// `environment_of` is asked, in the new process, for the value of the session variable;
// `preload` goes in front of what LD_PRELOAD holds already; with
// `ignores_interrupt` it begins with SIGINT ignored, so that a terminal's Ctrl-C is for us
// alone. Returns when the program's image is running, or could not be, or when a signal
// has come before either.
Launched Launch(const std::vector<std::string>& command,
                const std::string& preload,
                LaunchSignals signals,
                const std::function<std::string(pid_t)>& environment_of,
                bool ignores_interrupt = false);

// The preload library that belongs to this executable: beside it, in ../lib/heapprofd, or
// in the build tree.
Result<std::string> FindPreloadLibrary();

}  // namespace heapprofd
