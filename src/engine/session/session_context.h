// What the parts of a session share: what it is to record, its clock, the modules,
// programs and targets that it knows, and what goes wrong.
//
// Any of them may have to wait for a process (attach/apart.h). What must not wait
// with it is done meanwhile, on the session's thread.
//
// One thread: the session's.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/session/attach_problems.h"
#include "engine/session/session_targets.h"
#include "engine/session_config.h"
#include "engine/tsc_clock.h"
#include "engine/unrecorded.h"
#include "unwind/module.h"

namespace heapprofd {

class SessionContext {
 public:
  SessionContext(const SessionConfig& config,
                 SessionTargets::TakeHooksOut take_hooks_out);

  SessionContext(const SessionContext&) = delete;
  SessionContext& operator=(const SessionContext&) = delete;

  const SessionConfig& config() const { return config_; }

  const TscClock& clock() const { return clock_; }

  ModuleCache& modules() { return modules_; }

  ProgramWatch& programs() { return programs_; }

  const ProgramWatch& programs() const { return programs_; }

  SessionTargets& targets() { return targets_; }

  const SessionTargets& targets() const { return targets_; }

  AttachProblems& problems() { return problems_; }

  // One line each; nothing of the starts of programs that are recorded all the same.
  std::vector<std::string> AllProblems() const;

  // Called every few milliseconds while the session waits for a process. It may
  // serve this session, too.
  void set_between(std::function<void()> between) { between_ = std::move(between); }

  const std::function<void()>& between() const { return between_; }

  // To be called while we wait for a process: reads rings. Not from within itself.
  void ServeMeanwhile();

  // The same for who waits.
  std::function<void()> meanwhile() {
    return [this] { ServeMeanwhile(); };
  }

 private:
  SessionConfig config_;
  TscClock clock_;
  ModuleCache modules_;
  ProgramWatch programs_;
  AttachProblems problems_;
  std::function<void()> between_ = [] {};
  SessionTargets targets_;  // with modules_, and what becomes of them
};

}  // namespace heapprofd
