// A watcher whose gate is the test, and programs with which it does not come to an end.
#include "attach/gate/exec_watcher.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attach/thread/vfork_waiter.h"
#include "base/clock.h"
#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

constexpr uint64_t kLongNs = 60'000'000'000;

class ExecWatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    GateEnds watchers;
    ASSERT_TRUE(OpenGateEnds(&watchers, &gate_));
    Tell({.news = GateNews::kReady});
    Result<std::shared_ptr<ExecWatcher>> watcher = ExecWatcher::Start(
        {}, {}, [&watchers]() -> Result<GateEnds> { return std::move(watchers); }, [] {});
    ASSERT_TRUE(watcher.ok()) << watcher.status().message();
    watcher_ = std::move(watcher).value();
  }

  void Tell(const GateMessage& message) const {
    ASSERT_EQ(send(gate_.socket.get(), &message, sizeof(message), 0),
              static_cast<ssize_t>(sizeof(message)));
  }

  GateEnds gate_;
  std::shared_ptr<ExecWatcher> watcher_;
};

bool IsTraced(pid_t pid) {
  return StatusField(ReadProcFile(ProcPath(pid, "status")), "TracerPid") != "0";
}

TEST_F(ExecWatcherTest, OthersAreServedUntilTheCatchingThreadHasEnded) {
  const VforkWaiter program;
  const uint64_t deadline_ns = MonotonicNs() + kLongNs;
  Tell({.news = GateNews::kHeld,
        .tid = program.pid(),
        .number = 1,
        .until_ns = deadline_ns});
  while (!IsTraced(program.pid()) && MonotonicNs() < deadline_ns)
    usleep(100);
  int served = 0;
  const Status status = watcher_->End([&served] { ++served; });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_GT(served, 0);
}

TEST_F(ExecWatcherTest, AProgramThatCouldNotWaitIsNamed) {
  const VforkWaiter program;
  const uint64_t deadline_ns = MonotonicNs() + kLongNs;
  Tell({.news = GateNews::kHeld, .tid = program.pid(), .number = 1, .until_ns = 1});
  std::vector<std::string> problems;
  while (problems.empty() && MonotonicNs() < deadline_ns) {
    usleep(100);
    problems = watcher_->TakeProblems();
  }
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0], "cannot attach to process " + std::to_string(program.pid()) +
                             ": it could not wait any longer: others of its name were "
                             "slow to start; attach with -p");
  EXPECT_TRUE(watcher_->End([] {}).ok());
}

// A crowd can make as many as it likes while the session has no time.
TEST_F(ExecWatcherTest, ProblemsThatNobodyTakesHaveABound) {
  constexpr uint64_t kMany = 1200;
  for (uint64_t i = 1; i <= kMany; ++i)
    Tell({.news = GateNews::kMissed, .number = i});
  // It has heard them all when it has done with what it hears last.
  const VforkWaiter program;
  const uint64_t deadline_ns = MonotonicNs() + kLongNs;
  Tell({.news = GateNews::kHeld,
        .tid = program.pid(),
        .number = 1,
        .until_ns = deadline_ns});
  while (!IsTraced(program.pid()) && MonotonicNs() < deadline_ns)
    usleep(100);
  const std::vector<std::string> problems = watcher_->TakeProblems();
  EXPECT_EQ(problems.size(), 1001u);
  EXPECT_EQ(problems[0],
            "cannot record programs from their start: 1 whose names may match started "
            "while too many others did; attach with -p");
  EXPECT_NE(problems.back().find("not all are shown"), std::string::npos);
  EXPECT_TRUE(watcher_->End([] {}).ok());
}

}  // namespace
}  // namespace heapprofd
