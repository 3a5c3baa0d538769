// The command line of heap_profile: one table of flags from which the parser and the help
// come.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/session_config.h"

namespace heapprofd {

struct Options {
  SessionConfig session;
  std::string output_directory;  // empty: a fresh one is made
  uint32_t top = 10;             // rows of the summary
  bool quiet = false;            // no status line, no summary
  bool show_help = false;
  bool show_version = false;
  std::vector<pid_t> pids;           // processes that already run
  std::vector<std::string> names;    // of programs, running or to come
  uint64_t duration_ms = 0;          // 0: until stopped
  std::vector<std::string> command;  // program and arguments
};

// Exit codes that are the tool's own (the program's code is passed through otherwise).
enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,       // the environment did not allow it
  kExitUsage = 2,         // wrong command line
  kExitCannotRun = 126,   // the program exists but cannot be executed
  kExitNoProgram = 127,   // the program was not found
  kExitSignalBase = 128,  // + signal number: the program was killed
};

// `arguments` without the tool's own name. Errors are usage errors with a hint.
Result<Options> ParseOptions(const std::vector<std::string>& arguments);

// One screen, made from the flag table.
std::string HelpText();

}  // namespace heapprofd
