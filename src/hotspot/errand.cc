#include "hotspot/errand.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "sandbox/sandbox.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxMessage = size_t{16} << 10;
constexpr uint64_t kEndPatienceNs = 3'000'000'000;   // to clean up
constexpr uint64_t kKillPatienceNs = 1'000'000'000;  // the kernel's part of ending
constexpr int kLookMs = 100;
// CAP_SETGID and CAP_SETUID, to become another user.
constexpr uint64_t kToBecomeUser = CapabilityBit(6) | CapabilityBit(7);

// First byte of a message from the messenger; the rest is text.
constexpr char kStage = 's';
constexpr char kResult = 'r';
constexpr char kError = 'e';

void Send(int socket, std::string message) {
  message.resize(std::min(message.size(), kMaxMessage));
  (void)send(socket, message.data(), message.size(), MSG_NOSIGNAL);
}

void IgnoreSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2})
    signal(number, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

Status BecomeMessenger(const Errand& errand, int socket) {
  IgnoreSignals();
  setsid();
  std::vector<int> kept = errand.kept;
  kept.push_back(socket);
  CloseAllBut(kept);
  if (chdir("/") != 0)
    return Status::FromErrno("cannot enter /", errno);
  HPD_TRY(DropCapabilities(kToBecomeUser));
  HPD_TRY(BecomeUser(errand.user, errand.group, {}));
  HPD_TRY(DropCapabilities(0));
  HPD_TRY(MakeUndumpable());
  return ForbidNewPrivileges();
}

[[noreturn]] void RunMessenger(const Errand& errand, ScopedFd socket) {
  {
    const Status status = BecomeMessenger(errand, socket.get());
    const Sender sender(std::move(socket));
    sender.TellResult(status.ok() ? errand.run(sender) : status);
  }
  _exit(0);
}

bool AwaitEnd(int handle, uint64_t patience_ns) {
  pollfd polled{.fd = handle, .events = POLLIN, .revents = 0};
  const uint64_t deadline = MonotonicNs() + patience_ns;
  for (uint64_t now = MonotonicNs(); now < deadline; now = MonotonicNs()) {
    if (poll(&polled, 1, static_cast<int>((deadline - now) / kNsPerMs + 1)) > 0)
      return true;
  }
  return false;
}

// One that a file system holds for ever is left to whoever reaps our children. Gives how
// it has ended, as waitpid(2) does, before we have ended it; nullopt: that is not known.
std::optional<int> EndMessenger(pid_t pid) {
  const ScopedFd handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const bool has_ended = AwaitEnd(handle.get(), kEndPatienceNs);
  if (!has_ended) {
    kill(pid, SIGKILL);
    AwaitEnd(handle.get(), kKillPatienceNs);
  }
  int how = 0;
  const bool is_known = waitpid(pid, &how, WNOHANG) == pid;
  return has_ended && is_known ? std::optional(how) : std::nullopt;
}

// Without having said anything.
Status EndedStatus(std::optional<int> how) {
  std::string text = "the process that asks has fallen silent";
  if (how && WIFSIGNALED(*how))
    text = "the process that asks was ended by signal " + std::to_string(WTERMSIG(*how)) +
           " (" + strsignal(WTERMSIG(*how)) + ")";
  return Status(StatusCode::kIo, text);
}

// nullopt: it has ended without a result.
std::optional<Result<std::string>> Await(int socket, const ErrandWait& wait) {
  std::string stage;
  uint64_t progress = wait.progress();
  uint64_t last_change = MonotonicNs();
  std::array<char, kMaxMessage> message{};
  while (true) {
    std::array<pollfd, 2> fds = {
        pollfd{.fd = socket, .events = POLLIN, .revents = 0},
        pollfd{.fd = wait.stop_fd, .events = POLLIN, .revents = 0}};
    poll(fds.data(), fds.size(), kLookMs);
    if (fds[1].revents != 0)
      return Status(StatusCode::kUnavailable, "interrupted");
    const uint64_t now = MonotonicNs();
    if (fds[0].revents != 0) {
      const ssize_t count = recv(socket, message.data(), message.size(), MSG_DONTWAIT);
      if (count <= 0)
        return std::nullopt;
      std::string text(message.data() + 1, static_cast<size_t>(count) - 1);
      if (message[0] != kStage)
        return message[0] == kResult ? Result<std::string>(std::move(text))
                                     : Status(StatusCode::kIo, std::move(text));
      stage = std::move(text);
      last_change = now;
    }
    if (std::exchange(progress, wait.progress()) != progress)
      last_change = now;
    if (now - last_change > wait.patience_ns)
      return Status(StatusCode::kTryAgain, stage);
    wait.show(stage);
  }
}

}  // namespace

void Sender::Tell(const std::string& stage) const {
  Send(socket_.get(), kStage + stage);
}

void Sender::TellResult(const Result<std::string>& result) const {
  Send(socket_.get(),
       result.ok() ? kResult + result.value() : kError + result.status().message());
}

Status Sender::Await(std::span<pollfd> fds, uint64_t deadline_ns) const {
  std::vector<pollfd> all(fds.begin(), fds.end());
  all.push_back({.fd = socket_.get(), .events = POLLIN, .revents = 0});
  while (true) {
    const uint64_t now = MonotonicNs();
    if (now >= deadline_ns)
      return Status(StatusCode::kTryAgain, "it has not answered in time");
    constexpr uint64_t kLongestMs = 60'000;
    const uint64_t left_ms = std::min((deadline_ns - now) / kNsPerMs + 1, kLongestMs);
    const int ready = poll(all.data(), all.size(), static_cast<int>(left_ms));
    if (ready < 0 && errno != EINTR)
      return Status::FromErrno("it cannot be waited for", errno);
    if (ready <= 0)
      continue;
    if (all.back().revents != 0)
      return Status(StatusCode::kUnavailable, "nobody waits for it");
    std::copy(all.begin(), all.end() - 1, fds.begin());
    return {};
  }
}

Status Sender::Await(int fd, short events, uint64_t deadline_ns) const {
  pollfd polled{.fd = fd, .events = events, .revents = 0};
  return Await({&polled, 1}, deadline_ns);
}

Status Sender::Pause(uint64_t ns) const {
  Status status = Await(-1, 0, MonotonicNs() + ns);
  return status.code() == StatusCode::kTryAgain ? Status() : status;
}

Result<std::string> RunErrand(const Errand& errand, const ErrandWait& wait) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return Status::FromErrno("a socket cannot be made", errno);
  ScopedFd ours(ends[0]);
  ScopedFd theirs(ends[1]);
  const pid_t pid = fork();
  if (pid < 0)
    return Status::FromErrno("a process cannot be made", errno);
  if (pid == 0) {
    ours.reset();
    RunMessenger(errand, std::move(theirs));
  }
  theirs.reset();
  std::optional<Result<std::string>> result = Await(ours.get(), wait);
  ours.reset();
  const std::optional<int> how = EndMessenger(pid);
  return result ? std::move(*result) : EndedStatus(how);
}

}  // namespace heapprofd
