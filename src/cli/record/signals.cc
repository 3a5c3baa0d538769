#include "cli/record/signals.h"

#include <unistd.h>

namespace heapprofd {

namespace {

// Whoever has started us wants that, and a descriptor would tell of it all the same.
bool IsIgnored(int signal) {
  struct sigaction action {};

  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void AddUnlessIgnored(int signal, sigset_t* signals) {
  if (!IsIgnored(signal))
    sigaddset(signals, signal);
}

}  // namespace

SteeringSignals::SteeringSignals(SignalSource source) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGUSR1})
    sigaddset(&signals, signal);
  AddUnlessIgnored(SIGHUP, &signals);  // as nohup does
  if (source == SignalSource::kTerminal) {
    AddUnlessIgnored(SIGQUIT, &signals);
    AddUnlessIgnored(SIGTSTP, &signals);
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

// Not by SIGSTOP: the kernel stops nobody by Ctrl-Z whom no shell could let go on.
void StopLikeOthers() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // here it stands still
  sigprocmask(SIG_BLOCK, &stop, nullptr);
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
