// What the tool's exit codes mean: the same for every command.
#pragma once

#include "base/status.h"

namespace heapprofd {

// Those that are the tool's own: of a program that it has started it passes on the code.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,       // the environment did not allow it
  kExitUsage = 2,         // wrong command line
  kExitNothing = 4,       // there is no data
  kExitThreshold = 5,     // what --fail-if names has come true
  kExitCannotRun = 126,   // the program exists but cannot be executed
  kExitNoProgram = 127,   // the program was not found
  kExitSignalBase = 128,  // + signal number: the program was killed
};

// Of a process whose end wait(2) has told with this status.
int ExitCodeOf(int wait_status);

// Prints the error as a line of `tool` and gives the exit code for it.
int Fail(const Status& status, const char* tool = "heap_profile");

}  // namespace heapprofd
