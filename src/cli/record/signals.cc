#include "cli/record/signals.h"

#include <unistd.h>

#include <algorithm>

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

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals)
    sigaddset(&set, signal);
  return set;
}

ScopedFd DescriptorOf(const sigset_t& signals) {
  return ScopedFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

SteeringSignals::SteeringSignals(SignalSource source) {
  sigset_t signals = SetOf({SIGCHLD, SIGINT, SIGTERM, SIGUSR1});
  AddUnlessIgnored(SIGHUP, &signals);  // as nohup does
  if (source == SignalSource::kTerminal) {
    AddUnlessIgnored(SIGQUIT, &signals);
    AddUnlessIgnored(SIGTSTP, &signals);
  }
  sigprocmask(SIG_BLOCK, &signals, &original_mask_);
  fd_ = DescriptorOf(signals);
}

std::optional<signalfd_siginfo> SteeringSignals::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info)))
    return std::nullopt;
  return info;
}

int TakeEnd() {
  const sigset_t ends = SetOf({SIGTERM, SIGHUP, SIGQUIT});
  const timespec now{};
  return std::max(sigtimedwait(&ends, nullptr, &now), 0);
}

void TakeInterrupt() {
  const ScopedFd interrupts = DescriptorOf(SetOf({SIGINT}));
  signalfd_siginfo taken{};
  [[maybe_unused]] const ssize_t size = read(interrupts.get(), &taken, sizeof(taken));
}

// Not by SIGSTOP: the kernel stops nobody by Ctrl-Z whom no shell could let go on.
void StopLikeOthers() {
  const sigset_t stop = SetOf({SIGTSTP});
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // here it stands still
  sigprocmask(SIG_BLOCK, &stop, nullptr);
}

ScopedFd StopRequests() {
  const sigset_t stop = SetOf({SIGTSTP});
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  return DescriptorOf(SetOf({SIGINT, SIGQUIT, SIGTERM, SIGHUP}));
}

}  // namespace heapprofd
