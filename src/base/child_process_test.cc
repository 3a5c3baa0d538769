// Children that are to end with their parent, whichever of the two is faster.
#include "base/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heapprofd {
namespace {

// The status of a process that asks to end with its parent when that is gone already.
int StatusOfOrphan(int signal) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t between = fork();
  if (between == 0) {
    const pid_t parent = getpid();
    if (fork() == 0) {
      while (getppid() == parent)
        usleep(100);
      EndWithParent(parent, signal);
      _exit(0);
    }
    _exit(0);
  }
  EXPECT_EQ(waitpid(between, nullptr, 0), between);
  int status = 0;
  EXPECT_GT(waitpid(-1, &status, 0), 0);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  return status;
}

TEST(ChildProcessTest, AParentThatHasEndedBeforeEndsItsChildToo) {
  for (const int signal : {SIGKILL, SIGTERM}) {
    const int status = StatusOfOrphan(signal);
    EXPECT_TRUE(WIFSIGNALED(status)) << signal;
    EXPECT_EQ(WTERMSIG(status), signal);
  }
}

TEST(ChildProcessTest, AParentThatLivesHasItsChild) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    EndWithParent(parent, SIGKILL);
    int signal = 0;
    prctl(PR_GET_PDEATHSIG, &signal);
    _exit(signal);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), SIGKILL);
}

}  // namespace
}  // namespace heapprofd
