// The process that asks for a gate, with a real one: as root alone.
#include "attach/gate/exec_gate.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>
#include <string>

#include "attach/gate/gate_link.h"
#include "attach/remote_process.h"
#include "base/clock.h"
#include "base/files/passed_fds.h"
#include "sandbox/sandbox.h"

namespace heapprofd {
namespace {

constexpr uint64_t kDeadlineNs = 60'000'000'000;

std::vector<pid_t> ChildrenNamed(const std::string& name) {
  const std::string self = std::to_string(getpid());
  std::istringstream children(
      ReadProcFile("/proc/" + self + "/task/" + self + "/children"));
  std::vector<pid_t> found;
  for (pid_t pid = 0; children >> pid;) {
    if (CommandName(pid) == name)
      found.push_back(pid);
  }
  return found;
}

class ExecGateTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<GateEnds> ends = gate_.AddWatcher();
    if (!ends.ok())
      GTEST_SKIP() << ends.status().message();
  }

  static Status Begin(Result<GateEnds> ends) {
    if (!ends.ok())
      return ends.status();
    std::string note;
    return GateLink(std::move(ends).value()).Begin(ExecNames(), &note);
  }

  // Gives its process.
  static pid_t SignalGate(int signal) {
    const std::vector<pid_t> gates = ChildrenNamed("heapprofd-gate");
    EXPECT_EQ(gates.size(), 1u);
    const pid_t pid = gates.size() == 1 ? gates[0] : 0;
    EXPECT_TRUE(pid > 0 && kill(pid, signal) == 0);
    return pid;
  }

  // Most are over too soon for that. 0: all were.
  pid_t StopScan(uint64_t deadline_ns) {
    while (MonotonicNs() < deadline_ns) {
      const Result<GateEnds> watcher = gate_.AddWatcher();
      for (const pid_t scan : ChildrenNamed("heapprofd-scan")) {
        siginfo_t state{};
        kill(scan, SIGSTOP);
        // While it waits for a disk, it is not stopped.
        while (waitid(P_PID, static_cast<id_t>(scan), &state,
                      WSTOPPED | WEXITED | WNOWAIT | WNOHANG) == 0 &&
               state.si_pid == 0 && MonotonicNs() < deadline_ns)
          sched_yield();
        if (state.si_code == CLD_STOPPED)
          return scan;
      }
    }
    return 0;
  }

  ExecGate gate_;
};

TEST_F(ExecGateTest, OneGateIsForAll) {
  EXPECT_TRUE(Begin(gate_.AddWatcher()).ok());
  EXPECT_TRUE(Begin(gate_.AddWatcher()).ok());
  EXPECT_EQ(ChildrenNamed("heapprofd-gate").size(), 1u);
}

TEST_F(ExecGateTest, AGateThatIsStoppedIsReplacedWhileSomebodyAsks) {
  const Result<GateEnds> watcher = gate_.AddWatcher();
  const pid_t stopped = SignalGate(SIGSTOP);
  const Status status = Begin(gate_.AddWatcher());
  EXPECT_TRUE(status.ok()) << status.message();
  const std::vector<pid_t> gates = ChildrenNamed("heapprofd-gate");
  ASSERT_FALSE(gates.empty());
  EXPECT_NE(gates.back(), stopped);
}

TEST_F(ExecGateTest, AGateThatIsStoppedWhileNobodyWatchesIsReplaced) {
  SignalGate(SIGSTOP);
  const Status status = Begin(gate_.AddWatcher());
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(ExecGateTest, AGateThatWasKilledIsReplaced) {
  SignalGate(SIGKILL);
  const Status status = Begin(gate_.AddWatcher());
  EXPECT_TRUE(status.ok()) << status.message();
}

// As the service does while it serves others.
TEST_F(ExecGateTest, WhatIsDoneMeanwhileTakesNoAnswerAway) {
  SignalGate(SIGKILL);
  int calls = 0;
  const Status status = Begin(gate_.AddWatcher([&] {
    gate_.Reap();
    ++calls;
  }));
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_GT(calls, 0);
}

// As one does that waits for a file system.
TEST_F(ExecGateTest, ALookForFileSystemsThatHangsHoldsUpNobodyForLongAndIsEnded) {
  const uint64_t deadline_ns = MonotonicNs() + kDeadlineNs;
  const pid_t hanging = StopScan(deadline_ns);
  ASSERT_NE(hanging, 0);
  const Status status = Begin(gate_.AddWatcher());
  EXPECT_TRUE(status.ok()) << status.message();
  while (kill(hanging, 0) == 0 && MonotonicNs() < deadline_ns)
    gate_.Reap();
  EXPECT_NE(kill(hanging, 0), 0);
}

// The gate would have to close it, and wait for whoever serves its file.
TEST_F(ExecGateTest, NobodyWhoWatchesCanSendItADescriptor) {
  const Result<GateEnds> watcher = gate_.AddWatcher();
  ASSERT_TRUE(watcher.ok()) << watcher.status().message();
  EXPECT_FALSE(SendWithFds(watcher.value().socket.get(), "x", {STDERR_FILENO}));
  EXPECT_EQ(errno, EPIPE);
  EXPECT_FALSE(SendWithFds(watcher.value().pipe.get(), "x", {STDERR_FILENO}));
  EXPECT_EQ(errno, ENOTSOCK);
}

// A program that gains rights at its exec would lose them under such a tracer.
TEST_F(ExecGateTest, WithoutTheRightToTraceAllNothingIsWatched) {
  const pid_t child = fork();
  if (child == 0) {
    ExecGate gate;
    const bool is_dropped = DropCapabilities(CapabilityBit(CAP_SYS_ADMIN)).ok();
    const Status status = gate.AddWatcher().status();
    _exit(is_dropped &&
                  status.message() ==
                      "cannot watch for new processes: this needs root (CAP_SYS_ADMIN, "
                      "CAP_SYS_PTRACE); those of your own that are seen running are "
                      "attached to; start them with the preload library or heap_profile "
                      "-- PROGRAM to record them from their first allocation"
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace heapprofd
