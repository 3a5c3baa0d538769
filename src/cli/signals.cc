#include "cli/signals.h"

namespace heapprofd {

SteeringSignals::SteeringSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1})
    sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, &original_mask_);
  fd_ = ScopedFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<signalfd_siginfo> SteeringSignals::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info)))
    return std::nullopt;
  return info;
}

}  // namespace heapprofd
