// What a session lends to those who attach to processes for it.
#pragma once

#include <functional>

#include "engine/session/attach_problems.h"
#include "engine/session/session_targets.h"
#include "engine/session_config.h"
#include "engine/tsc_clock.h"
#include "engine/unrecorded.h"
#include "unwind/module.h"

namespace heapprofd {

struct AttachContext {
  const SessionConfig* config;
  const TscClock* clock;
  ModuleCache* modules;
  ProgramWatch* programs;
  SessionTargets* targets;
  AttachProblems* problems;
  // To be called while we wait for a process (attach/apart.h): on the session's
  // thread, and not from within itself.
  std::function<void()> serve_meanwhile;
};

}  // namespace heapprofd
