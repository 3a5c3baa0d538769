// Every exec of the machine waits for the permission of a small process of its own that
// does nothing else (gate.h), for all recordings there are: each that asked for itself
// would cost every program that is started its time. Whatever happens to that process the
// programs do not wait: it is killed by the kernel when it does not answer for
// 0.4 seconds. See docs/design/exec-gate.md.
//
// Whoever owns it serves others meanwhile, so nothing here waits for long without a call
// of `between`: neither for the gate, which may be stopped or just ending, nor for the
// looking for file systems (mount_scan.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "attach/gate/gate_link.h"
#include "attach/gate/gate_messages.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class ExecGate {
 public:
  using Between = std::function<void()>;

  ExecGate() = default;
  ~ExecGate();
  ExecGate(const ExecGate&) = delete;
  ExecGate& operator=(const ExecGate&) = delete;

  // Gives a connection for a recording that watches for programs of all users. Starts the
  // process when there is none (any more). `between`: called now and then meanwhile; it
  // may call Reap. kUnavailable: not possible here, and what it needs.
  Result<GateEnds> AddWatcher(const Between& between = [] {});

  // Forgets processes of ours that have ended. To be called now and then.
  void Reap();

 private:
  Result<std::optional<GateEnds>> AskGate(const Between& between);
  Status StartGate();
  Result<ScopedFd> BeginScan(const Between& between);
  Result<bool> AwaitAnswer(uint64_t patience_ns, const Between& between);
  void EndGate();
  // It is forgotten when its end has come.
  void Kill(pid_t* pid);

  pid_t gate_ = -1;
  ScopedFd control_;
  pid_t scan_ = -1;
  uint64_t scan_until_ns_ = 0;
  std::vector<pid_t> killed_;
};

}  // namespace heapprofd
