// Every exec of the machine waits for the permission of a small process of its own that
// does nothing else (gate.h), for all recordings there are: each that asked for itself
// would cost every program that is started its time. Whatever happens to that process the
// programs do not wait: it is killed by the kernel when it does not answer for
// 0.4 seconds. See docs/design/exec-gate.md.
//
// Whoever owns it serves others meanwhile, so nothing here waits: neither for the gate,
// which may be stopped or just ending, nor for the looking for file systems. One look
// (mount_scan.h) is for all who have asked before it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "attach/gate/gate_link.h"
#include "attach/gate/gate_messages.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class ExecGate {
 public:
  struct Answer {
    uint64_t ticket;
    // kUnavailable: not possible here, and what it needs.
    Result<GateEnds> ends;
  };

  ExecGate() = default;
  ~ExecGate();
  ExecGate(const ExecGate&) = delete;
  ExecGate& operator=(const ExecGate&) = delete;

  // Asks for a connection for a recording that watches for programs of all users. Starts
  // the process when there is none (any more). Gives a ticket, which the answer carries;
  // none is 0.
  uint64_t Ask();

  // Readable when the next turn is due; -1: never.
  int fd() const { return control_.get(); }

  // A turn. Gives the answers that have become ready.
  std::vector<Answer> Turn();

  // Milliseconds until the next turn is due; -1: no need.
  int MillisecondsToNext() const;

  // Asks, and waits for the answer. `between`: called now and then meanwhile.
  Result<GateEnds> AddWatcher(const std::function<void()>& between = [] {});

 private:
  enum class State : uint8_t { kNone, kStarting, kServing };

  struct Asker {
    uint64_t ticket;
    int gates = 0;       // that have ended since it asked
    GateEnds ends = {};  // valid: the gate has been told
  };

  void StartGate();
  void HearGate();
  void Obey(const GateReply& reply);
  void EndGate();
  // It has ended, or does not answer: there will be another one.
  void LoseGate();
  void LookAtScan();
  // Tells the gate of all who wait, and has a process look for file systems for them.
  void BeginScan();
  bool TellGate(Asker& asker, int mounts);
  bool IsAnybodyUntold() const;
  bool IsAnybodyTold() const;
  void AnswerAll(const Status& error);
  // It is forgotten when its end has come.
  void Kill(pid_t* pid);
  void ReapKilled();

  State state_ = State::kNone;
  pid_t gate_ = -1;
  ScopedFd control_;
  uint64_t gate_until_ns_ = 0;  // it must have answered
  pid_t scan_ = -1;
  uint64_t scan_until_ns_ = 0;
  std::vector<pid_t> killed_;
  uint64_t last_ticket_ = 0;
  std::vector<Asker> askers_;
  std::vector<Answer> answers_;
};

}  // namespace heapprofd
