// Programs that a session catches when they are started, so that they are
// recorded from their first allocation on.
//
// One thread: the session's. The watcher and the hooks have threads of their
// own (attach/gate/exec_watcher.h): what these have done is asked for here,
// never waited for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "attach/gate/exec_watcher.h"
#include "base/status.h"
#include "engine/session/attached_targets.h"
#include "engine/session/session_context.h"
#include "engine/target/target.h"

namespace heapprofd {

class CaughtStarts {
 public:
  // Both outlive it.
  CaughtStarts(SessionContext* context, AttachedTargets* attached)
      : context_(context), attached_(attached) {}

  ~CaughtStarts();
  CaughtStarts(const CaughtStarts&) = delete;
  CaughtStarts& operator=(const CaughtStarts&) = delete;

  // From now on, and until End, records every program of a matching name from
  // its first allocation on. The functions of `filter` are called on other
  // threads.
  Status Begin(ExecWatcher::Filter filter, const ExecWatcher::MakeGate& make_gate);

  bool is_catching() const { return watcher_ != nullptr; }

  // Readable when a program has been caught, which then waits for Adopt; -1:
  // never.
  int fd() const { return watcher_ != nullptr ? watcher_->fd() : -1; }

  // In a child of ours that outlives us, perhaps.
  void LeaveToParent();

  // Makes targets of those that have been caught.
  void Adopt();

  // Catches no more: what was accepted is concluded then, or never will be.
  void End();

 private:
  // A program that was caught, and its hooks go in.
  struct Accepted {
    std::shared_ptr<CaughtProgram> caught;
    Target* target;
    uint64_t until_ns;  // then it is given up; CLOCK_MONOTONIC
  };

  Status AdoptOne(const std::shared_ptr<CaughtProgram>& caught);
  void TakeConclusions();
  bool Conclude(const Accepted& accepted);

  SessionContext* context_;
  AttachedTargets* attached_;
  std::shared_ptr<ExecWatcher> watcher_;  // its thread has a share
  std::vector<Accepted> accepted_;
};

}  // namespace heapprofd
