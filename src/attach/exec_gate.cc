#include "attach/exec_gate.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <string>
#include <string_view>

#include "attach/fd_passing.h"
#include "attach/gate_process.h"
#include "attach/mount_scan.h"

namespace heapprofd {
namespace {

constexpr int kStartMs = 5000;
constexpr unsigned kScanSeconds = 10;

Status CannotWatch(int error) {
  const char* remedy = error == EMFILE
                           ? "stop other sessions, or raise the limits "
                             "fs.fanotify.max_user_groups and ulimit -n"
                           : "this needs root (CAP_SYS_ADMIN); as an ordinary user start "
                             "the program with heap_profile -- PROGRAM";
  return Status(
      StatusCode::kUnavailable,
      std::string("cannot watch for new processes: ") + strerror(error) + "; " + remedy);
}

struct SocketPair {
  ScopedFd ours;
  ScopedFd theirs;

  bool Open() {
    std::array<int, 2> fds{-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) != 0)
      return false;
    ours = ScopedFd(fds[0]);
    theirs = ScopedFd(fds[1]);
    return true;
  }
};

// A child that has only `socket` of our descriptors and ends with us at the latest.
pid_t ForkWith(const ScopedFd& socket, const std::function<void(ScopedFd)>& run) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0)
    return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Where messages go must not become something else.
  constexpr int kOnly = STDERR_FILENO + 1;
  const int kept = fcntl(socket.get(), F_DUPFD_CLOEXEC, kOnly + 1);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (getppid() != parent || dup2(nowhere, STDIN_FILENO) < 0 ||
      dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0 ||
      dup2(kept, kOnly) != kOnly || close_range(kOnly + 1, ~0U, 0) != 0)
    _exit(1);
  run(ScopedFd(kOnly));
  _exit(0);
}

void EndChild(pid_t* pid) {
  if (*pid <= 0)
    return;
  kill(*pid, SIGKILL);
  while (waitpid(*pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  *pid = -1;
}

void RunScan(const ScopedFd& socket) {
  prctl(PR_SET_NAME, "heapprofd-scan");
  signal(SIGALRM, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  alarm(kScanSeconds);  // a file system on the way may not answer
  SendLocalMounts(socket.get());
}

}  // namespace

ExecGate::~ExecGate() {
  End();
}

void ExecGate::End() {
  control_.reset();
  EndChild(&scan_);
  EndChild(&gate_);
}

bool ExecGate::IsAlive() {
  if (gate_ > 0 && waitpid(gate_, nullptr, WNOHANG) != 0)
    gate_ = -1;
  return gate_ > 0;
}

Status ExecGate::Start() {
  SocketPair control;
  if (!control.Open())
    return CannotWatch(errno);
  gate_ = ForkWith(control.theirs, RunGate);
  if (gate_ < 0)
    return CannotWatch(errno);
  control.theirs.reset();
  pollfd started{.fd = control.ours.get(), .events = POLLIN, .revents = 0};
  int error = ETIMEDOUT;
  if (poll(&started, 1, kStartMs) > 0 &&
      recv(control.ours.get(), &error, sizeof(error), MSG_DONTWAIT) !=
          static_cast<ssize_t>(sizeof(error)))
    error = ECHILD;
  if (error != 0) {
    End();
    return CannotWatch(error);
  }
  control_ = std::move(control.ours);
  return {};
}

Result<ScopedFd> ExecGate::AddWatcher(uid_t owner) {
  if (!IsAlive()) {
    End();
    HPD_TRY(Start());
  }
  EndChild(&scan_);
  SocketPair watcher;
  SocketPair mounts;
  if (!watcher.Open() || !mounts.Open())
    return CannotWatch(errno);
  const std::string_view bytes(reinterpret_cast<const char*>(&owner), sizeof(owner));
  if (!SendWithFds(control_.get(), bytes, {watcher.theirs.get(), mounts.theirs.get()}))
    return CannotWatch(errno);
  mounts.theirs.reset();
  scan_ = ForkWith(mounts.ours, RunScan);
  if (scan_ < 0)
    return CannotWatch(errno);
  return std::move(watcher.ours);
}

}  // namespace heapprofd
