// Looks now and then what others have put on the functions that are hooked: probes of the
// kernel (bpftrace, perf probe) on their first byte, which only cost time, and those in the
// middle of our jump, which the program does not survive.
//
// One thread: the session's. What may wait for a process is done apart.
#pragma once

#include <cstdint>
#include <memory>

#include "attach/attached_process.h"
#include "engine/session/live_target.h"
#include "engine/session/session_context.h"

namespace heapprofd {

class HookWatch {
 public:
  // Outlives it.
  explicit HookWatch(SessionContext* context) : context_(context) {}

  // Does nothing until a second after the last look.
  void Look();

 private:
  ForeignMarks LookAt(LiveTarget& live);
  void TakeBrokenOut(const std::shared_ptr<AttachedProcess>& attached,
                     const ForeignMarks& marks);

  SessionContext* context_;
  uint64_t looked_ns_ = 0;
};

}  // namespace heapprofd
