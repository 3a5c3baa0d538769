#include "attach/refusals.h"

#include <cerrno>

#include "attach/traced_thread.h"

namespace heapprofd {

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
