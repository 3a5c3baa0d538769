// Becomes another program, in a child; its parent learns what has kept it from that.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_code.h"

namespace heapprofd {

// `command`: the program, looked up in PATH, and its arguments. `error_fd`: the end for
// writing of a pipe that is closed by an execution (O_CLOEXEC).
[[noreturn]] inline void Execute(const std::vector<std::string>& command, int error_fd) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  const ssize_t ignored = write(error_fd, &error, sizeof(error));
  static_cast<void>(ignored);
  _exit(kExitNoProgram);
}

// An errno, of what Execute() has written; 0: nothing.
inline int ExecutionError(std::string_view written) {
  int error = 0;
  if (written.size() == sizeof(error))
    memcpy(&error, written.data(), sizeof(error));
  return error;
}

// An errno; 0: the program runs. Waits for either. `error_fd`: the pipe's other end; that
// for writing is the child's alone.
inline int AwaitExecution(int error_fd) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(error_fd, &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof(error)) ? error : 0;
}

// What keeps a program from running.
struct NoExecution {
  bool is_missing = false;  // it, or its interpreter
  std::string interpreter;  // what is missing; empty: that is there
};

// `error`: an errno, of Execute().
NoExecution WhyNotExecuted(const std::string& program, int error);

}  // namespace heapprofd
