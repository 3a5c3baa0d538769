#include "cli/run_command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/scoped_fd.h"
#include "cli/execute.h"
#include "cli/exit_code.h"

namespace heapprofd {
namespace {

constexpr int kLookMs = 1000;
constexpr size_t kMaxOutput = size_t{64} << 10;

[[noreturn]] void BecomeCommand(const std::vector<std::string>& command,
                                const sigset_t& mask,
                                int output) {
  setpgid(0, 0);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  dup2(output, STDOUT_FILENO);
  Execute(command);
  _exit(kExitNoProgram);
}

// False: it took too long.
bool TakeOutput(int fd, const Impatience& impatience, std::string* output) {
  std::array<char, 4096> buffer{};
  while (true) {
    std::array<pollfd, 2> fds = {
        pollfd{.fd = fd, .events = POLLIN, .revents = 0},
        pollfd{.fd = impatience.fd, .events = POLLIN, .revents = 0}};
    poll(fds.data(), fds.size(), kLookMs);
    if (impatience.is_over && impatience.is_over())
      return false;
    if (fds[0].revents == 0)
      continue;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return true;
    if (output->size() < kMaxOutput)
      output->append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace

Result<RunningCommand> RunningCommand::Start(const std::vector<std::string>& command,
                                             const sigset_t& mask) {
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0)
    return Status::FromErrno("cannot create a pipe", errno);
  ScopedFd read_end(pipe_fds[0]);
  const ScopedFd write_end(pipe_fds[1]);
  const pid_t pid = fork();
  if (pid < 0)
    return Status::FromErrno("cannot start " + command[0], errno);
  if (pid == 0)
    BecomeCommand(command, mask, write_end.get());
  setpgid(pid, pid);  // whoever of us is first
  return RunningCommand(command[0], pid, std::move(read_end));
}

RunningCommand::RunningCommand(RunningCommand&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, 0)),
      output_(std::move(other.output_)) {}

RunningCommand::~RunningCommand() {
  if (pid_ == 0)
    return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Result<CommandResult> RunningCommand::Await(const Impatience& impatience) {
  CommandResult result;
  const bool is_done = TakeOutput(output_.get(), impatience, &result.output);
  if (!is_done)
    kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(std::exchange(pid_, 0), &status, 0);
  if (!is_done)
    return Status(StatusCode::kTryAgain,
                  "cannot run " + name_ + ": it did not answer and was ended");
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailure;
  if (result.exit_code == kExitNoProgram)
    return Status(StatusCode::kNotFound, "cannot run " + name_ + ": it is not installed");
  while (!result.output.empty() && strchr("\r\n ", result.output.back()) != nullptr)
    result.output.pop_back();
  return result;
}

Result<CommandResult> RunCommand(const std::vector<std::string>& command,
                                 const sigset_t& mask,
                                 const Impatience& impatience) {
  HPD_TRY_ASSIGN(RunningCommand running, RunningCommand::Start(command, mask));
  return running.Await(impatience);
}

}  // namespace heapprofd
