// The process that asks for a gate, with a real one: as root alone.
#include "attach/gate/exec_gate.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <sstream>
#include <string>

#include "attach/gate/gate_link.h"
#include "attach/remote_process.h"
#include "base/clock.h"
#include "base/files/passed_fds.h"

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

  // Of all that have been asked for.
  std::set<uint64_t> Await(size_t count) {
    std::set<uint64_t> tickets;
    const uint64_t deadline_ns = MonotonicNs() + kDeadlineNs;
    while (tickets.size() < count && MonotonicNs() < deadline_ns) {
      pollfd due{.fd = gate_.fd(), .events = POLLIN, .revents = 0};
      poll(&due, 1, std::max(0, gate_.MillisecondsToNext()));
      for (ExecGate::Answer& answer : gate_.Turn()) {
        const Status begun = Begin(std::move(answer.ends));
        EXPECT_TRUE(begun.ok()) << begun.message();
        tickets.insert(answer.ticket);
      }
    }
    return tickets;
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
      gate_.Ask();
      for (size_t answers = 0; answers == 0 && MonotonicNs() < deadline_ns;
           answers = gate_.Turn().size()) {
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

TEST_F(ExecGateTest, ThoseWhoAskAtOnceShareOneLookForFileSystems) {
  while (!ChildrenNamed("heapprofd-scan").empty())
    gate_.Turn();
  const std::set<uint64_t> asked = {gate_.Ask(), gate_.Ask(), gate_.Ask()};
  std::vector<ExecGate::Answer> early = gate_.Turn();
  EXPECT_TRUE(early.empty());
  EXPECT_LE(ChildrenNamed("heapprofd-scan").size(), 1u);
  EXPECT_EQ(Await(3), asked);
}

TEST_F(ExecGateTest, WhoWasToldByAGateThatEndsIsToldByTheNext) {
  const std::set<uint64_t> asked = {gate_.Ask(), gate_.Ask()};
  SignalGate(SIGSTOP);
  EXPECT_EQ(Await(2), asked);
}

// As one does that waits for a file system.
TEST_F(ExecGateTest, ALookForFileSystemsThatHangsHoldsUpNobodyForLongAndIsEnded) {
  const uint64_t deadline_ns = MonotonicNs() + kDeadlineNs;
  const pid_t hanging = StopScan(deadline_ns);
  ASSERT_NE(hanging, 0);
  const uint64_t ticket = gate_.Ask();
  while (!Await(1).contains(ticket) && MonotonicNs() < deadline_ns) {
  }
  EXPECT_LT(MonotonicNs(), deadline_ns);
  while (kill(hanging, 0) == 0 && MonotonicNs() < deadline_ns)
    gate_.Turn();
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

TEST_F(ExecGateTest, WithNothingToDoItNeedsNoTurn) {
  const uint64_t deadline_ns = MonotonicNs() + kDeadlineNs;
  while (gate_.MillisecondsToNext() >= 0 && MonotonicNs() < deadline_ns)
    gate_.Turn();
  EXPECT_EQ(gate_.MillisecondsToNext(), -1);
}

}  // namespace
}  // namespace heapprofd
