#include "cli/exit_code.h"

#include <sys/wait.h>

#include <cstdio>

#include "base/print.h"

namespace heapprofd {

int ExitCodeOf(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
                                : kExitSignalBase + WTERMSIG(wait_status);
}

int Fail(const Status& status, const char* tool) {
  // What was printed before comes before it where both go to one place.
  fflush(stdout);
  Print(stderr, "%s: %s\n", tool, status.message().c_str());
  return status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

}  // namespace heapprofd
