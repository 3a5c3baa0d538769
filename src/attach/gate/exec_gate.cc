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
#include <string>
#include <string_view>
#include <utility>

#include "attach/gate/gate_process.h"
#include "attach/gate/mount_scan.h"
#include "base/child_process.h"
#include "base/clock.h"
#include "base/files/passed_fds.h"
#include "sandbox/sandbox.h"
#include "sandbox/system_call_names.h"

namespace heapprofd {
namespace {

constexpr uint64_t kScanEndNs =
    500'000'000;  // for the scan to end by itself and its end to be heard
constexpr uint64_t kStartNs = 3'000'000'000;
constexpr uint64_t kAnswerNs = 1'000'000'000;
constexpr int kMaxGates = 3;           // that end before one who asks has his answer
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
  const char* remedy = "attach to them with -p once they run";
  if (error == EMFILE)
    remedy =
        "stop other sessions, or raise the limits fs.fanotify.max_user_groups and ulimit "
        "-n";
  else if (error == EPERM)
    remedy =
        "this needs root (CAP_SYS_ADMIN); as an ordinary user start the program with "
        "heap_profile -- PROGRAM";
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
  for (ReapKilled(); !killed_.empty() && MonotonicNs() < deadline_ns; ReapKilled())
    SleepNs(kLookAgainNs);
}

uint64_t ExecGate::Ask() {
  askers_.push_back({.ticket = ++last_ticket_});
  return last_ticket_;
}

std::vector<ExecGate::Answer> ExecGate::Turn() {
  ReapKilled();
  LookAtScan();
  HearGate();
  if (IsAnybodyUntold() && state_ == State::kNone)
    StartGate();
  if (IsAnybodyUntold() && state_ == State::kServing && scan_ < 0)
    BeginScan();
  return std::exchange(answers_, {});
}

int ExecGate::MillisecondsToNext() const {
  if (!askers_.empty())
    return kSoonMs;
  if (scan_ > 0)
    return 10 * kSoonMs;
  return killed_.empty() ? -1 : 200 * kSoonMs;
}

Result<GateEnds> ExecGate::AddWatcher(const std::function<void()>& between) {
  const uint64_t ticket = Ask();
  while (true) {
    for (Answer& answer : Turn()) {
      if (answer.ticket == ticket)
        return std::move(answer.ends);
    }
    pollfd readable{.fd = fd(), .events = POLLIN, .revents = 0};
    poll(&readable, 1, kSoonMs);
    between();
  }
}

bool ExecGate::IsAnybodyUntold() const {
  return std::any_of(askers_.begin(), askers_.end(),
                     [](const Asker& asker) { return !asker.ends.socket.valid(); });
}

bool ExecGate::IsAnybodyTold() const {
  return std::any_of(askers_.begin(), askers_.end(),
                     [](const Asker& asker) { return asker.ends.socket.valid(); });
}

void ExecGate::StartGate() {
  SocketPair control;
  if (!control.Open())
    return AnswerAll(CannotWatch(errno));
  gate_ = ForkWith(control.theirs, RunGate);
  if (gate_ < 0)
    return AnswerAll(CannotWatch(errno));
  control_ = std::move(control.ours);
  RefuseFds(control_.get());
  fcntl(control_.get(), F_SETFL, O_NONBLOCK);  // it may be stopped
  state_ = State::kStarting;
  gate_until_ns_ = MonotonicNs() + kStartNs;
}

void ExecGate::HearGate() {
  while (state_ != State::kNone) {
    GateReply reply{};
    const ssize_t got = recv(control_.get(), &reply, sizeof(reply), MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof(reply))) {
      Obey(reply);
      continue;
    }
    const bool is_alive = got < 0 && (errno == EAGAIN || errno == EINTR);
    const bool is_awaited = state_ == State::kStarting || IsAnybodyTold();
    if (!is_alive || (is_awaited && MonotonicNs() >= gate_until_ns_))
      LoseGate();
    return;
  }
}

void ExecGate::Obey(const GateReply& reply) {
  gate_until_ns_ = MonotonicNs() + kAnswerNs;
  if (reply.error != 0) {
    EndGate();
    return AnswerAll(CannotWatch(reply.error));
  }
  state_ = State::kServing;
  const auto asker = std::find_if(askers_.begin(), askers_.end(), [&](const Asker& one) {
    return one.ticket == reply.ticket;
  });
  if (asker == askers_.end())
    return;
  answers_.push_back({.ticket = asker->ticket, .ends = std::move(asker->ends)});
  askers_.erase(asker);
}

void ExecGate::EndGate() {
  state_ = State::kNone;
  control_.reset();
  Kill(&gate_);
}

// The kernel ends one that is stopped, and until it has closed everything that looks like
// a gate that is there: who has asked it in that time shall not notice.
void ExecGate::LoseGate() {
  EndGate();
  for (Asker& asker : askers_) {
    asker.ends = {};
    if (++asker.gates < kMaxGates)
      continue;
    answers_.push_back(
        {.ticket = asker.ticket,
         .ends = CannotWatch("the process that does so has ended, or does not answer, " +
                             std::to_string(kMaxGates) +
                             " times; see what stops or kills heapprofd-gate")});
  }
  std::erase_if(askers_, [](const Asker& asker) { return asker.gates >= kMaxGates; });
}

void ExecGate::LookAtScan() {
  if (scan_ > 0 && waitpid(scan_, nullptr, WNOHANG) != 0)
    scan_ = -1;
  if (scan_ > 0 && MonotonicNs() >= scan_until_ns_)
    Kill(&scan_);
}

void ExecGate::BeginScan() {
  if (killed_.size() >= kMaxKilled)
    return AnswerAll(CannotWatch(
        std::to_string(killed_.size()) +
        " processes that looked for file systems do not end though they were killed; see "
        "what they wait for in /proc/PID/stack"));
  SocketPair mounts;
  if (!mounts.Open())
    return AnswerAll(CannotWatch(errno));
  RefuseFds(mounts.ours.get());
  scan_ = ForkWith(mounts.ours, RunScan);
  if (scan_ < 0)
    return AnswerAll(CannotWatch(errno));
  scan_until_ns_ = MonotonicNs() + kMaxScanNs + kScanEndNs;
  if (!IsAnybodyTold())
    gate_until_ns_ = MonotonicNs() + kAnswerNs;
  for (Asker& asker : askers_) {
    if (!asker.ends.socket.valid() && !TellGate(asker, mounts.theirs.get()))
      return;
  }
}

// False: there is no room, or it has ended, which shows when it is heard.
bool ExecGate::TellGate(Asker& asker, int mounts) {
  GateEnds watchers;
  GateEnds gates;
  if (!OpenGateEnds(&watchers, &gates)) {
    AnswerAll(CannotWatch(errno));
    return false;
  }
  const GateRequest request{.ticket = asker.ticket};
  const std::string_view bytes(reinterpret_cast<const char*>(&request), sizeof(request));
  if (!SendWithFds(control_.get(), bytes, {gates.socket.get(), gates.pipe.get(), mounts}))
    return false;
  asker.ends = std::move(watchers);
  return true;
}

void ExecGate::AnswerAll(const Status& error) {
  for (const Asker& asker : std::exchange(askers_, {}))
    answers_.push_back({.ticket = asker.ticket, .ends = error});
}

void ExecGate::Kill(pid_t* pid) {
  if (*pid <= 0)
    return;
  kill(*pid, SIGKILL);
  killed_.push_back(std::exchange(*pid, -1));
}

void ExecGate::ReapKilled() {
  std::erase_if(killed_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
}

}  // namespace heapprofd
