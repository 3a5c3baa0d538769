#include "cli/record/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/scoped_fd.h"
#include "base/text.h"
#include "cli/execute.h"
#include "cli/exit_code.h"
#include "cli/record/own_limits.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr char kPreloadVariable[] = "LD_PRELOAD";
constexpr char kAsanVariable[] = "ASAN_OPTIONS";
constexpr char kAsanOption[] = "verify_asan_link_order=0:";
constexpr char kLibraryName[] = "libheapprofd_preload.so";

void SetEnvironment(const std::string& preload, const std::string& session) {
  const char* old = getenv(kPreloadVariable);
  const bool has_old = old != nullptr && *old != 0;
  setenv(kPreloadVariable, has_old ? (preload + ":" + old).c_str() : preload.c_str(), 1);
  setenv(kSessionVariable, session.c_str(), 1);
  // AddressSanitizer's shared runtime refuses to start behind any preloaded library.
  // Behind this one it works: it is the program's allocator, and the hooks call it.
  const char* asan = getenv(kAsanVariable);
  setenv(kAsanVariable,
         (std::string(kAsanOption) + (asan != nullptr ? asan : "")).c_str(), 1);
}

[[noreturn]] void BecomeProgram(const std::vector<std::string>& command,
                                const sigset_t& signal_mask,
                                bool ignores_interrupt,
                                int error_fd) {
  if (ignores_interrupt)
    signal(SIGINT, SIG_IGN);
  sigprocmask(SIG_SETMASK, &signal_mask, nullptr);
  RestoreLimits();
  Execute(command, error_fd);
}

// Until the program runs or could not be run, or a signal has come that may be for one
// which does neither: its file may lie on a file system that does not answer.
void AwaitNews(int error_fd, int signals_fd) {
  std::array<pollfd, 2> fds = {pollfd{.fd = error_fd, .events = POLLIN, .revents = 0},
                               pollfd{.fd = signals_fd, .events = POLLIN, .revents = 0}};
  while (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  if (fds[0].revents == 0)
    fcntl(error_fd, F_SETFL, O_NONBLOCK);
}

LaunchError CannotRun(const std::string& program, int error) {
  const NoExecution why = WhyNotExecuted(program, error);
  const std::string cannot = "cannot run " + program + ": ";
  if (!why.interpreter.empty())
    return {kExitNoProgram,
            cannot + "its interpreter " + Printable(why.interpreter) +
                " does not exist; install that, or name another in the program"};
  if (why.is_missing)
    return {kExitNoProgram, cannot + strerror(ENOENT) + "; check the name and PATH"};
  return {kExitCannotRun,
          cannot + strerror(error) + "; check that it is an executable file"};
}

}  // namespace

Launched Launch(const std::vector<std::string>& command,
                const std::string& preload,
                LaunchSignals signals,
                const std::function<std::string(pid_t)>& environment_of,
                bool ignores_interrupt) {
  Launched launched;
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0) {
    launched.error = {kExitFailure,
                      Status::FromErrno("cannot create a pipe", errno).message()};
    return launched;
  }
  const ScopedFd read_end(pipe_fds[0]);
  ScopedFd write_end(pipe_fds[1]);
  const pid_t pid = fork();
  if (pid < 0) {
    launched.error = {kExitFailure,
                      Status::FromErrno("cannot start a process", errno).message()};
    return launched;
  }
  if (pid == 0) {
    SetEnvironment(preload, environment_of(getpid()));
    BecomeProgram(command, signals.mask, ignores_interrupt, write_end.get());
  }
  write_end.reset();
  AwaitNews(read_end.get(), signals.fd);
  if (const int error = AwaitExecution(read_end.get()); error != 0) {
    launched.error = CannotRun(command[0], error);
    return launched;
  }
  launched.pid = pid;
  return launched;
}

Result<std::string> FindPreloadLibrary() {
  std::array<char, PATH_MAX> self{};
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size() - 1);
  const std::string path(self.data(), length > 0 ? static_cast<size_t>(length) : 0);
  const std::string folder = path.substr(0, path.rfind('/'));
  for (const char* place : {"/", "/../lib/heapprofd/", "/../client/"}) {
    std::string candidate = folder + place + kLibraryName;
    std::array<char, PATH_MAX> real{};
    if (realpath(candidate.c_str(), real.data()) != nullptr)
      return std::string(real.data());
  }
  return Status(StatusCode::kNotFound, std::string("cannot find ") + kLibraryName +
                                           " near " + folder +
                                           "; build or install it again");
}

}  // namespace heapprofd
