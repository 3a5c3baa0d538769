#include "cli/run_command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/scoped_fd.h"
#include "cli/options.h"

namespace heapprofd {

Result<CommandResult> RunCommand(const std::vector<std::string>& command,
                                 const sigset_t& mask) {
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0)
    return Status::FromErrno("cannot create a pipe", errno);
  const ScopedFd read_end(pipe_fds[0]);
  ScopedFd write_end(pipe_fds[1]);
  const pid_t pid = fork();
  if (pid < 0)
    return Status::FromErrno("cannot start " + command[0], errno);
  if (pid == 0) {
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    dup2(write_end.get(), STDOUT_FILENO);
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& argument : command)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(kExitNoProgram);
  }
  write_end.reset();
  CommandResult result;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = read(read_end.get(), buffer.data(), buffer.size())) > 0;) {
    if (result.output.size() < (size_t{64} << 10))
      result.output.append(buffer.data(), static_cast<size_t>(got));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailure;
  if (result.exit_code == kExitNoProgram)
    return Status(StatusCode::kNotFound,
                  "cannot run " + command[0] + ": it is not installed");
  while (!result.output.empty() && strchr("\r\n ", result.output.back()) != nullptr)
    result.output.pop_back();
  return result;
}

}  // namespace heapprofd
