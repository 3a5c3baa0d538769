#include "attach/thread/stragglers.h"

#include <gtest/gtest.h>

#include <string>

#include "attach/thread/test_process.h"
#include "attach/thread/traced_thread.h"
#include "base/clock.h"
#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

constexpr uint64_t kStragglerPatienceNs = 10'000'000'000;

std::string TracerOfThread(pid_t tid) {
  return StatusField(ReadProcFile(ProcPath(tid, "status")), "TracerPid");
}

class StragglersTest : public testing::Test {
 protected:
  void SetUp() override {
    TracedThread thread(process_.pid());
    ASSERT_TRUE(thread.Seize());
    thread.Abandon();
    ASSERT_EQ(CountStragglers(), 1u);
  }

  const TestProcess process_;
};

TEST_F(StragglersTest, OneThatHasStoppedIsLetGo) {
  const uint64_t deadline_ns = MonotonicNs() + kStragglerPatienceNs;
  while (CountStragglers() > 0 && MonotonicNs() < deadline_ns) {
    ReleaseStragglers();
    usleep(100);
  }
  EXPECT_EQ(CountStragglers(), 0u);
  EXPECT_EQ(TracerOfThread(process_.pid()), "0");
}

TEST_F(StragglersTest, OneThatIsToBeTracedAgainIsNoneAnyMore) {
  TracedThread again(process_.pid());
  ASSERT_TRUE(again.Seize());
  EXPECT_EQ(CountStragglers(), 0u);
  EXPECT_EQ(again.WaitForStop(MonotonicNs() + kStragglerPatienceNs),
            TracedThread::Wait::kStopped);
  again.Release();
  EXPECT_EQ(TracerOfThread(process_.pid()), "0");
}

TEST_F(StragglersTest, OneThatHasEndedIsForgotten) {
  kill(process_.pid(), SIGKILL);
  const uint64_t deadline_ns = MonotonicNs() + kStragglerPatienceNs;
  while (CountStragglers() > 0 && MonotonicNs() < deadline_ns)
    ReleaseStragglers();
  EXPECT_EQ(CountStragglers(), 0u);
}

}  // namespace
}  // namespace heapprofd
