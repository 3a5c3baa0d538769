// Which processes can be opened, and what is said of the others.
#include "attach/remote_process.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "attach/refusals.h"
#include "attach/thread/thread_states.h"
#include "attach/thread/vfork_waiter.h"
#include "base/files/proc_files.h"
#include "base/test_child.h"
#include "base/test_limits.h"

namespace heapprofd {
namespace {

std::string ErrorOf(pid_t pid) {
  return RemoteProcess::Open(pid).status().message();
}

std::string CannotAttachTo(pid_t pid) {
  return "cannot attach to process " + std::to_string(pid) + ": ";
}

TEST(RemoteProcessTest, ANumberOfNoProcessIsSaidToBeThat) {
  constexpr pid_t kNone = (1 << 22) - 1;
  EXPECT_EQ(ErrorOf(kNone),
            CannotAttachTo(kNone) + "there is no such process; check the number");
}

TEST(RemoteProcessTest, WithoutDescriptorsThatIsSaidAndNothingOfTheProcess) {
  const pid_t self = getpid();
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP() << "sanitizers need descriptors of their own";
  const ScopedLimit none(RLIMIT_NOFILE, 0);
  EXPECT_EQ(ErrorOf(self), CannotAttachTo(self) + "Too many open files; raise ulimit -n");
}

TEST(RemoteProcessTest, AnotherUsersProcessNeedsRoot) {
  const pid_t self = getpid();
  const std::optional<std::string> said =
      SaidInChild([] { return setuid(65534) == 0; }, [self] { return ErrorOf(self); });
  if (!said)
    GTEST_SKIP() << "we are no other user here";
  EXPECT_EQ(*said,
            CannotAttachTo(self) +
                "its memory may not be read: it is another user's, or not dumpable "
                "(it was setuid, has capabilities, or wants it so); run "
                "heap_profile as root");
}

TEST(RemoteProcessTest, OneThatRunsInItsParentsMemoryIsAboutToStartAProgram) {
  const pid_t parent = fork();
  if (parent == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (vfork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true)
        pause();
    }
    _exit(0);
  }
  pid_t child = 0;
  while (child == 0 || !IsUninterruptible(parent)) {
    const std::string children = ReadProcFile(
        ProcPath(parent, "task/" + std::to_string(parent) + "/children"), 64);
    child = static_cast<pid_t>(strtol(children.c_str(), nullptr, 10));
    usleep(100);
  }
  EXPECT_EQ(ErrorOf(child),
            CannotAttachTo(child) + "it is about to start a program; try again");
  kill(child, SIGKILL);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, __WALL);
}

TEST(SeizeErrorTest, WhoTracesItAlreadyIsNamed) {
  const pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(pid, nullptr, __WALL);
  EXPECT_EQ(SeizeError(pid, EPERM).message(),
            CannotAttachTo(pid) + "process " + std::to_string(getpid()) + " (" +
                CommandName(getpid()) + ") traces it already; end that first");
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, __WALL);
  EXPECT_EQ(SeizeError(getpid(), EPERM).message(),
            CannotAttachTo(getpid()) +
                "Operation not permitted; see heap_profile doctor -p " +
                std::to_string(getpid()));
}

}  // namespace
}  // namespace heapprofd
