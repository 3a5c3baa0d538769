#include "cli/run_command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/child_process.h"
#include "base/files/root_environment.h"
#include "base/scoped_fd.h"
#include "base/text.h"
#include "cli/execute.h"
#include "cli/exit_code.h"

namespace heapprofd {
namespace {

constexpr int kLookMs = 1000;
constexpr size_t kMaxOutput = size_t{64} << 10;

// What it has of us.
struct Inheritance {
  pid_t parent;
  const std::string& path;  // where programs are looked up
  const sigset_t& mask;
  int output;
  int error_fd;
};

[[noreturn]] void BecomeCommand(const std::vector<std::string>& command,
                                const Inheritance& inheritance,
                                CommandManner manner) {
  if (manner.ends_with_us)
    EndWithParent(inheritance.parent, SIGTERM);
  setpgid(0, 0);
  // An empty one would be the working directory.
  if (getenv("PATH") != nullptr)
    setenv("PATH", inheritance.path.empty() ? "/" : inheritance.path.c_str(), 1);
  sigprocmask(SIG_SETMASK, &inheritance.mask, nullptr);
  dup2(inheritance.output, STDOUT_FILENO);
  if (manner.with_errors)
    dup2(inheritance.output, STDERR_FILENO);
  Execute(command, inheritance.error_fd);
}

struct Pipe {
  ScopedFd read_end;
  ScopedFd write_end;
};

Result<Pipe> CreatePipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0)
    return Status::FromErrno("cannot create a pipe", errno);
  return Pipe{ScopedFd(fds[0]), ScopedFd(fds[1])};
}

// kNotFound only of what is not there.
Status ExecutionFailure(const std::string& program, int error) {
  const std::string cannot = "cannot run " + program;
  const NoExecution why = WhyNotExecuted(program, error);
  if (!why.interpreter.empty())
    return Status(StatusCode::kUnavailable, cannot + ": its interpreter " +
                                                Printable(why.interpreter) +
                                                " does not exist; install that");
  if (why.is_missing)
    return Status(StatusCode::kNotFound, cannot + ": it is not installed");
  if (error == EACCES || error == ENOEXEC)
    return Status(StatusCode::kUnavailable, cannot + ": " + strerror(error) +
                                                "; check that it is an executable file");
  return Status::FromErrno(cannot, error);
}

// What `fd` says until its end. False: it took too long.
bool TakeAll(int fd, const Impatience& impatience, std::string* output) {
  std::array<char, 4096> buffer{};
  while (true) {
    std::array<pollfd, 2> fds = {
        pollfd{.fd = fd, .events = POLLIN, .revents = 0},
        pollfd{.fd = impatience.fd, .events = POLLIN, .revents = 0}};
    poll(fds.data(), fds.size(), kLookMs);
    const bool is_over = impatience.is_over && impatience.is_over();
    if (fds[0].revents == 0) {
      if (is_over)
        return false;
      continue;
    }
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return true;  // also at the last moment
    if (is_over)
      return false;
    if (output->size() < kMaxOutput)
      output->append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace

Result<RunningCommand> RunningCommand::Start(const std::vector<std::string>& command,
                                             const sigset_t& mask,
                                             CommandManner manner) {
  HPD_TRY_ASSIGN(Pipe output, CreatePipe());
  HPD_TRY_ASSIGN(Pipe execution, CreatePipe());
  const pid_t parent = getpid();
  const std::string path = TrustedPath();
  const pid_t pid = fork();
  if (pid < 0)
    return Status::FromErrno("cannot start " + command[0], errno);
  if (pid == 0)
    BecomeCommand(command,
                  {.parent = parent,
                   .path = path,
                   .mask = mask,
                   .output = output.write_end.get(),
                   .error_fd = execution.write_end.get()},
                  manner);
  setpgid(pid, pid);  // whoever of us is first
  return RunningCommand(command[0], pid, std::move(execution.read_end),
                        std::move(output.read_end));
}

RunningCommand::RunningCommand(RunningCommand&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, 0)),
      execution_(std::move(other.execution_)),
      output_(std::move(other.output_)) {}

RunningCommand::~RunningCommand() {
  if (pid_ == 0)
    return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool RunningCommand::HasEnded() const {
  siginfo_t info{};
  return pid_ == 0 || (waitid(P_PID, static_cast<id_t>(pid_), &info,
                              WEXITED | WNOHANG | WNOWAIT) == 0 &&
                       info.si_pid == pid_);
}

Result<CommandResult> RunningCommand::Await(const Impatience& impatience) {
  CommandResult result;
  std::string error;
  const bool is_done = TakeAll(execution_.get(), impatience, &error) &&
                       TakeAll(output_.get(), impatience, &result.output);
  if (!is_done)
    kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(std::exchange(pid_, 0), &status, 0);
  if (!is_done)
    return Status(StatusCode::kTryAgain,
                  "cannot run " + name_ + ": it did not answer and was ended");
  if (!error.empty())
    return ExecutionFailure(name_, ExecutionError(error));
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailure;
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
