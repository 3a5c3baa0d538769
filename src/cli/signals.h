// The signals that steer a recording, read from a descriptor.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <optional>

#include "base/scoped_fd.h"

namespace heapprofd {

class SteeringSignals {
 public:
  // Blocks SIGCHLD, SIGINT, SIGTERM, SIGHUP and SIGUSR1 in this thread: they arrive by
  // descriptor from now on. Must run before a program is started.
  SteeringSignals();

  // Becomes readable when one has come.
  int fd() const { return fd_.get(); }

  std::optional<signalfd_siginfo> Next();

  // The mask before: what a program must start with.
  const sigset_t& original_mask() const { return original_mask_; }

 private:
  ScopedFd fd_;
  sigset_t original_mask_{};
};

}  // namespace heapprofd
