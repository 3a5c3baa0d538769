#include "base/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/scoped_fd.h"

namespace heapprofd {

void EndWithParent(pid_t parent, int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) {  // it was faster, and the kernel tells of it no more
    raise(signal);
    _exit(128 + signal);  // it was ignored, or blocked
  }
}

void VolunteerToBeEnded() {
  const ScopedFd fd(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr char kMost[] = "1000";
  (void)write(fd.get(), kMost, sizeof(kMost) - 1);  // a wish
}

}  // namespace heapprofd
