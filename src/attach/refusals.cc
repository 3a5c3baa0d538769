#include "attach/refusals.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "attach/remote_process.h"
#include "attach/thread/seccomp_filters.h"
#include "attach/thread/thread_states.h"

namespace heapprofd {

Status IsInExecNow(pid_t pid) {
  return LostRace(pid, "it is about to execute another program");
}

Status SeizeError(pid_t pid, int error) {
  const std::string what = "cannot attach to process " + std::to_string(pid) + ": ";
  if (error == ESRCH)
    return Status(StatusCode::kNotFound, what + "it has ended");
  if (error == EAGAIN)
    return IsInExecNow(pid);
  const std::string tracer =
      StatusField(ReadProcFile(ProcPath(pid, "status"), 16384), "TracerPid");
  if (!tracer.empty() && tracer != "0")
    return Status(
        StatusCode::kUnavailable,
        what + "process " + tracer + " (" +
            CommandName(static_cast<pid_t>(strtol(tracer.c_str(), nullptr, 10))) +
            ") traces it already; end that first");
  const std::string obstacle =
      error == EPERM && IsUnderSeccomp(pid) ? ObstacleToSuspendingFilters() : "";
  if (!obstacle.empty())
    return Status(StatusCode::kUnavailable, what + obstacle);
  return Status(
      StatusCode::kUnavailable,
      what + strerror(error) + "; see heap_profile doctor -p " + std::to_string(pid));
}

Status CannotAttach(pid_t pid, const std::string& why) {
  return Status(StatusCode::kUnavailable,
                "cannot attach to process " + std::to_string(pid) + ": " + why);
}

Status LostRace(pid_t pid, const std::string& why) {
  return Status(StatusCode::kTryAgain, "cannot attach to process " + std::to_string(pid) +
                                           ": " + why + "; try again");
}

Status LostThread(pid_t pid, pid_t tid) {
  if (IsDead(pid, tid))
    return SeizeError(pid, ESRCH);
  return LostRace(pid, std::string("a thread of it") + kDidNotStop);
}

Status EndedAtStart(pid_t pid) {
  return CannotAttach(pid, "it ended before it had started");
}

Status CannotWriteCode(pid_t pid) {
  return CannotAttach(
      pid,
      "its code cannot be written to, not even by a tracer; allow that to "
      "tracers (kernel option proc_mem.force_override)");
}

}  // namespace heapprofd
