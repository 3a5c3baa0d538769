// Every exec of the machine waits for the leave of a small process of its own that does
// nothing else (gate.h), for all recordings there are: each that asked for itself would
// cost every program that is started its time. Whatever happens to that process the
// programs do not wait: it is killed by the kernel when it does not answer for
// 0.4 seconds. See docs/design/exec-gate.md.
#pragma once

#include <sys/types.h>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class ExecGate {
 public:
  ExecGate() = default;
  ~ExecGate();
  ExecGate(const ExecGate&) = delete;
  ExecGate& operator=(const ExecGate&) = delete;

  // A socket for somebody who watches for programs of `owner`, all users' when that is
  // root: for GateLink. Starts the process when there is none (any more). kUnavailable:
  // not possible here, and what it needs.
  Result<ScopedFd> AddWatcher(uid_t owner);

 private:
  Status Start();
  bool IsAlive();
  void End();

  pid_t gate_ = -1;
  pid_t scan_ = -1;  // the last one that looked for file systems
  ScopedFd control_;
};

}  // namespace heapprofd
