#include "cli/signals.h"

#include <unistd.h>

namespace heapprofd {

namespace {

// Whoever has started us wants that, and a descriptor would tell of it all the same.
bool IsIgnored(int signal) {
  struct sigaction action {};

  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SteeringSignals::SteeringSignals(SignalSource source) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    sigaddset(&signals, signal);
  if (source == SignalSource::kTerminal) {
    for (const int signal : {SIGQUIT, SIGTSTP}) {
      if (!IsIgnored(signal))
        sigaddset(&signals, signal);
    }
  }
  sigprocmask(SIG_BLOCK, &signals, &original_mask_);
  fd_ = ScopedFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<signalfd_siginfo> SteeringSignals::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info)))
    return std::nullopt;
  return info;
}

void StopLikeOthers() {
  kill(getpid(), SIGSTOP);
}

ScopedFd StopRequests() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP})
    sigaddset(&signals, signal);
  return ScopedFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace heapprofd
