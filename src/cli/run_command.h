// Runs another program and takes what it says.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"
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

struct CommandManner {
  bool with_errors = false;   // takes what it says on standard error, too
  bool ends_with_us = false;  // asked to by SIGTERM when we are gone
};

// A program that runs beside us.
class RunningCommand {
 public:
  // `command`: the program, looked up in PATH, and its arguments. It runs with this
  // signal mask and in a process group of its own: Ctrl-C at the terminal is for us.
  static Result<RunningCommand> Start(const std::vector<std::string>& command,
                                      const sigset_t& mask,
                                      CommandManner manner = {});

  RunningCommand(RunningCommand&& other) noexcept;
  RunningCommand& operator=(RunningCommand&&) = delete;
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  // Kills it when nobody has awaited it.
  ~RunningCommand();

  // Whether Await would not wait long.
  bool HasEnded() const;

  // Its end; once. Takes its standard output without trailing blanks, at most 64 KiB of
  // it; until this is called it can write what a pipe holds. kTryAgain: it was killed,
  // perhaps before it ran. kNotFound: it is not there.
  Result<CommandResult> Await(const Impatience& impatience);

 private:
  RunningCommand(std::string name, pid_t pid, ScopedFd execution, ScopedFd output)
      : name_(std::move(name)),
        pid_(pid),
        execution_(std::move(execution)),
        output_(std::move(output)) {}

  std::string name_;
  pid_t pid_;           // 0: it has ended
  ScopedFd execution_;  // says what has kept it from running; ends when it runs
  ScopedFd output_;
};

// Starts it and awaits its end.
Result<CommandResult> RunCommand(const std::vector<std::string>& command,
                                 const sigset_t& mask,
                                 const Impatience& impatience = {});

}  // namespace heapprofd
