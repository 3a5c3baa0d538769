#include "attach/gate/exec_gate.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "attach/gate/gate_process.h"
#include "attach/gate/mount_scan.h"
#include "base/child_process.h"
#include "base/clock.h"
#include "base/files/own_rights.h"
#include "base/files/passed_fds.h"
#include "sandbox/sandbox.h"
#include "sandbox/system_call_names.h"

namespace heapprofd {
namespace {

constexpr uint64_t kScanEndNs =
    500'000'000;  // for the scan to end by itself and its end to be heard
constexpr uint64_t kStartNs = 3'000'000'000;
constexpr uint64_t kAnswerNs = 1'000'000'000;
constexpr int kMaxGates = 3;           // that are tried before a watcher is refused
constexpr size_t kMaxKilled = 16;      // that hang in the kernel
constexpr unsigned kScanSeconds = 10;  // should its owner be stopped
constexpr uint64_t kLastNs = 200'000'000;
constexpr uint64_t kLookAgainNs = 1'000'000;
constexpr int kSoonMs = 5;

Status CannotWatch(const std::string& cause_and_remedy) {
  return {StatusCode::kUnavailable,
          "cannot watch for new processes: " + cause_and_remedy};
}

Status CannotWatch(int error) {
  if (error == EPERM)
    return CannotWatch(std::string(
        "this needs root (CAP_SYS_ADMIN, CAP_SYS_PTRACE); those of your own that are "
        "seen running are attached to; start them with the preload library or "
        "heap_profile -- PROGRAM to record them from their first allocation"));
  const char* remedy = error == EMFILE ? "stop other sessions, or raise the limits "
                                         "fs.fanotify.max_user_groups and ulimit -n"
                                       : "attach to them with -p once they run";
  return CannotWatch(std::string(strerror(error)) + "; " + remedy);
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
  EndWithParent(parent, SIGKILL);
  // Where messages go must not become something else.
  constexpr int kOnly = STDERR_FILENO + 1;
  const int kept = fcntl(socket.get(), F_DUPFD_CLOEXEC, kOnly + 1);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (dup2(nowhere, STDIN_FILENO) < 0 || dup2(nowhere, STDOUT_FILENO) < 0 ||
      dup2(nowhere, STDERR_FILENO) < 0 || dup2(kept, kOnly) != kOnly)
    _exit(1);
  CloseAllBut(std::array{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, kOnly});
  run(ScopedFd(kOnly));
  _exit(0);
}

// What is needed to look at other processes' mounts: their links in /proc, directories of
// others. Old kernels have no system call filters.
bool KeepRightsToScan() {
  constexpr std::array<uint32_t, 7> kCalls = {SYS_openat,     SYS_openat2, kReadLinkCall,
                                              SYS_newfstatat, SYS_ioctl,   SYS_getdents64,
                                              SYS_sendmsg};
  if (!DropCapabilities(CapabilityBit(CAP_DAC_READ_SEARCH) |
                        CapabilityBit(CAP_SYS_PTRACE))
           .ok() ||
      !ForbidNewPrivileges().ok())
    return false;
  // In threads: it leaves behind what the kernel does not show.
  const Status status = RestrictSystemCalls(SystemCalls::kUseWhatIsOpenInThreads, kCalls);
  return status.ok() || status.code() == StatusCode::kUnavailable;
}

void RunScan(const ScopedFd& socket) {
  prctl(PR_SET_NAME, "heapprofd-scan");
  signal(SIGALRM, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  alarm(kScanSeconds);  // a file system on the way may not answer
  if (KeepRightsToScan())
    SendLocalMounts(socket.get());
}

}  // namespace

ExecGate::~ExecGate() {
  control_.reset();
  Kill(&scan_);
  Kill(&gate_);
  const uint64_t deadline_ns = MonotonicNs() + kLastNs;
  for (Reap(); !killed_.empty() && MonotonicNs() < deadline_ns; Reap())
    SleepNs(kLookAgainNs);
}

void ExecGate::Reap() {
  std::erase_if(killed_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
  if (scan_ > 0 && waitpid(scan_, nullptr, WNOHANG) != 0)
    scan_ = -1;
  if (scan_ > 0 && MonotonicNs() >= scan_until_ns_)
    Kill(&scan_);
  if (gate_ > 0 && waitpid(gate_, nullptr, WNOHANG) != 0) {
    gate_ = -1;
    control_.reset();
  }
}

// The kernel ends a gate that is stopped, and until it has closed everything that looks
// like one that is there: who has asked it in that time shall not notice.
Result<GateEnds> ExecGate::AddWatcher(const Between& between) {
  // Without the second one, programs that gain rights at their exec would lose them.
  if (!HasCapability(CAP_SYS_ADMIN) || !HasCapability(CAP_SYS_PTRACE))
    return CannotWatch(EPERM);
  for (int gates = 0; gates < kMaxGates; ++gates) {
    HPD_TRY_ASSIGN(std::optional<GateEnds> ends, AskGate(between));
    if (ends)
      return std::move(*ends);
    EndGate();
  }
  return CannotWatch("the process that does so has ended, or does not answer, " +
                     std::to_string(kMaxGates) +
                     " times; see what stops or kills heapprofd-gate");
}

// nullopt: the gate has ended, or does not answer.
Result<std::optional<GateEnds>> ExecGate::AskGate(const Between& between) {
  Reap();
  if (gate_ < 0) {
    HPD_TRY(StartGate());
    HPD_TRY_ASSIGN(const bool is_there, AwaitAnswer(kStartNs, between));
    if (!is_there)
      return std::optional<GateEnds>();
  }
  HPD_TRY_ASSIGN(const ScopedFd mounts, BeginScan(between));
  GateEnds watchers;
  GateEnds gates;
  if (!OpenGateEnds(&watchers, &gates))
    return CannotWatch(errno);
  if (!SendWithFds(control_.get(), kWatchRequest,
                   {gates.socket.get(), gates.pipe.get(), mounts.get()}))
    return std::optional<GateEnds>();
  HPD_TRY_ASSIGN(const bool is_told, AwaitAnswer(kAnswerNs, between));
  return is_told ? std::optional(std::move(watchers)) : std::optional<GateEnds>();
}

Status ExecGate::StartGate() {
  SocketPair control;
  if (!control.Open())
    return CannotWatch(errno);
  gate_ = ForkWith(control.theirs, RunGate);
  if (gate_ < 0)
    return CannotWatch(errno);
  control_ = std::move(control.ours);
  RefuseFds(control_.get());
  fcntl(control_.get(), F_SETFL, O_NONBLOCK);  // it may be stopped
  return {};
}

// Gives the end of a socket from which file systems come; has a process look for them.
Result<ScopedFd> ExecGate::BeginScan(const Between& between) {
  for (Reap(); scan_ > 0; Reap()) {  // an earlier look is ended when it takes too long
    SleepNs(kLookAgainNs);
    between();
  }
  if (killed_.size() >= kMaxKilled)
    return CannotWatch(
        std::to_string(killed_.size()) +
        " processes that looked for file systems do not end though they were killed; see "
        "what they wait for in /proc/PID/stack");
  SocketPair mounts;
  if (!mounts.Open())
    return CannotWatch(errno);
  RefuseFds(mounts.ours.get());
  scan_ = ForkWith(mounts.ours, RunScan);
  if (scan_ < 0)
    return CannotWatch(errno);
  scan_until_ns_ = MonotonicNs() + kMaxScanNs + kScanEndNs;
  return std::move(mounts.theirs);
}

// False: the gate has ended, or does not answer. An error: it cannot be one.
Result<bool> ExecGate::AwaitAnswer(uint64_t patience_ns, const Between& between) {
  for (const uint64_t end_ns = MonotonicNs() + patience_ns;;) {
    GateReply reply{};
    const ssize_t got = recv(control_.get(), &reply, sizeof(reply), MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof(reply)) && reply.error != 0) {
      EndGate();
      return CannotWatch(reply.error);
    }
    if (got == static_cast<ssize_t>(sizeof(reply)))
      return true;
    const bool is_alive = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (!is_alive || MonotonicNs() >= end_ns)
      return false;
    pollfd readable{.fd = control_.get(), .events = POLLIN, .revents = 0};
    poll(&readable, 1, kSoonMs);
    between();
  }
}

void ExecGate::EndGate() {
  control_.reset();
  Kill(&gate_);
}

void ExecGate::Kill(pid_t* pid) {
  if (*pid <= 0)
    return;
  kill(*pid, SIGKILL);
  killed_.push_back(std::exchange(*pid, -1));
}

}  // namespace heapprofd
