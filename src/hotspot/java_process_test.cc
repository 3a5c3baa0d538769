// What is said of processes that are no Java virtual machines; tests/e2e/java_test.py has
// real ones.
#include "hotspot/java_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/remote_process.h"
#include "base/test_child.h"
#include "base/test_limits.h"

namespace heapprofd {
namespace {

std::string ErrorOf(pid_t pid) {
  return OpenJavaProcess(pid).status().message();
}

std::string CannotAttachToSelf() {
  return "cannot attach to process " + std::to_string(getpid()) + " (" +
         CommandName(getpid()) + "): ";
}

TEST(JavaProcessTest, AProgramWithoutAVirtualMachineIsSaidToBeThat) {
  EXPECT_EQ(ErrorOf(getpid()),
            CannotAttachToSelf() +
                "it has no HotSpot virtual machine (libjvm.so); jcmd -l "
                "lists those that are running");
}

TEST(JavaProcessTest, WithoutDescriptorsItIsNotSaidToBeGone) {
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP() << "sanitizers need descriptors of their own";
  const ScopedLimit none(RLIMIT_NOFILE, 0);
  EXPECT_TRUE(ErrorOf(getpid()).ends_with("Too many open files; raise ulimit -n"))
      << ErrorOf(getpid());
}

TEST(JavaProcessTest, WhatMayNotBeInspectedNeedsRoot) {
  const std::optional<std::string> said =
      SaidInChild([] { return setuid(65534) == 0; },  // and with it not dumpable
                  [] {
                    const pid_t pid = fork();
                    if (pid == 0) {
                      pause();
                      _exit(0);
                    }
                    std::string error = ErrorOf(pid);
                    kill(pid, SIGKILL);
                    waitpid(pid, nullptr, 0);
                    return error;
                  });
  if (!said)
    GTEST_SKIP() << "we are no other user here";
  EXPECT_TRUE(said->ends_with(
      ": its memory may not be read: it is another user's, or not dumpable (it was "
      "setuid, has capabilities, or wants it so); run heap_profile as root"))
      << *said;
}

}  // namespace
}  // namespace heapprofd
