#include "attach/thread/seccomp_filters.h"

#include <linux/capability.h>
#include <unistd.h>

#include "base/files/own_rights.h"
#include "base/files/proc_files.h"

namespace heapprofd {

bool IsUnderSeccomp(pid_t tid) {
  const std::string mode =
      StatusField(ReadProcFile(ProcPath(tid, "status"), 16384), "Seccomp");
  return !mode.empty() && mode != "0";
}

// The kernel's conditions for PTRACE_O_SUSPEND_SECCOMP.
std::string ObstacleToSuspendingFilters() {
  if (IsSelfUnderSeccomp())
    return "it runs under a seccomp filter, which a profiler that is under one itself "
           "may "
           "not suspend; run heapprofd without a filter (in a container: "
           "seccomp=unconfined)";
  if (!IsInFirstUserNamespace())
    return "it runs under a seccomp filter, which root of a user name space may not "
           "suspend; run heap_profile outside it, as root";
  if (HasCapability(CAP_SYS_ADMIN))
    return "";
  if (geteuid() == 0)
    return "it runs under a seccomp filter, which only root with CAP_SYS_ADMIN can "
           "suspend; give the container of heap_profile that capability";
  return "it runs under a seccomp filter, which only root can suspend; run heap_profile "
         "as root";
}

}  // namespace heapprofd
