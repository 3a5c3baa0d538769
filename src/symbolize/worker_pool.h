// Runs tasks in child processes, one per processor, so that what they read cannot hurt
// the caller: a file that is truncated while it is mapped (SIGBUS), debug information
// made to crash, hang or exhaust its reader cost the result of that one task.
//
// Children are forked, not executed: a task sees the caller's memory as it was and,
// unless it has no rights, open descriptors; changes to either stay in the child. Threads
// of the caller do not exist there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace heapprofd {

// What a worker keeps of the caller's rights.
enum class WorkerRights : uint8_t {
  kAll,
  // To open files and programs: no privilege but reading files of others, if the caller
  // has that.
  kToOpen,
  // To compute, with WorkerLimits::kept_fds alone: see BecomeReader().
  kNone,
};

struct WorkerLimits {
  uint64_t memory_bytes = uint64_t{4} << 30;  // per worker, beyond what the caller uses
  // Each has at most its share of half of the machine's memory and of what the caller's
  // own limit leaves. False: `memory_bytes` is all that counts, and workers are the first
  // to be ended when memory runs out.
  bool divides_memory = true;
  uint32_t cpu_seconds = 120;                   // per task
  uint32_t wall_seconds = 180;                  // per task
  uint64_t result_bytes = uint64_t{512} << 20;  // per task
  unsigned workers = 0;                         // 0: WorkersByDefault()
  int cancel_fd = -1;        // readable: the caller waits no longer; -1: there is none
  size_t not_cancelled = 0;  // so many of the last tasks are waited for all the same
  WorkerRights rights = WorkerRights::kAll;
  std::vector<int> kept_fds = {};  // of a worker without rights
  // Called here when it is readable: answers what a worker may ask for meanwhile.
  int request_fd = -1;
  std::function<void()> on_request = {};
  // Called here when a task is done, and several times a second while none is: how many
  // are done.
  std::function<void(size_t done)> on_progress = {};
};

// One per processor, at most 8.
unsigned WorkersByDefault();

using WorkerTask = std::function<std::string(size_t index)>;
using WorkerResult = std::function<void(size_t index, Result<std::string> result)>;

// Calls `task` for each index below `count` in some child, and `on_result` here once for
// each, in the order in which they finish. The bytes are as little to be trusted as what
// the task has read. Errors are kUnavailable and say what has happened to the worker:
// "the worker was killed by SIGBUS (...)".
//
// False: cancelled; tasks that were not done have no result.
bool RunInWorkers(size_t count,
                  const WorkerTask& task,
                  const WorkerResult& on_result,
                  const WorkerLimits& limits = {});

}  // namespace heapprofd
