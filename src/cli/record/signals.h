// The signals that steer a recording, read from a descriptor.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "base/scoped_fd.h"

namespace heapprofd {

// Who else than processes may send them.
enum class SignalSource : uint8_t { kProcesses, kTerminal };

// Becomes readable when one of them is pending; the caller sees to it that they are
// blocked.
ScopedFd DescriptorOf(const sigset_t& signals);

sigset_t SetOf(std::initializer_list<int> signals);

class SteeringSignals {
 public:
  // Blocks SIGCHLD, SIGINT, SIGTERM, SIGUSR1 and, unless it is ignored, SIGHUP in this
  // thread: they arrive by descriptor from now on. Must run before a program is started.
  // With kTerminal also SIGQUIT and SIGTSTP unless they are ignored: the status line has
  // to go before.
  explicit SteeringSignals(SignalSource source = SignalSource::kProcesses);

  // Becomes readable when one has come.
  int fd() const { return fd_.get(); }

  std::optional<signalfd_siginfo> Next();

  // The mask before: what a program must start with.
  const sigset_t& original_mask() const { return original_mask_; }

 private:
  ScopedFd fd_;
  sigset_t original_mask_{};
};

// Takes SIGTERM, SIGHUP or SIGQUIT, which ask for the end of whatever is done, if one of
// them is pending. 0: none was.
int TakeEnd();

// Takes SIGINT if it is pending: it has ended what it was for. Others stay.
void TakeInterrupt();

// Does what Ctrl-Z asks for, in one who has kept it from doing so.
void StopLikeOthers();

// Becomes readable when SIGINT, SIGQUIT, SIGTERM or SIGHUP is pending, which
// SteeringSignals keeps from ending the process. Ctrl-Z is the kernel's again.
ScopedFd StopRequests();

}  // namespace heapprofd
