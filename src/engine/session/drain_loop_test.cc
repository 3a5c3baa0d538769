#include "engine/session/drain_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <vector>

#include "base/clock.h"
#include "engine/target/test_target.h"

namespace heapprofd {
namespace {

class DrainLoopTest : public testing::Test {
 protected:
  DrainLoopTest() { clock_.Update(); }

  void Add(TestTarget& made) {
    live_.push_back({.target = &made.target(),
                     .pidfd = ScopedFd(open("/dev/null", O_RDONLY | O_CLOEXEC))});
  }

  static void Fill(TestTarget& made) {
    const uint64_t key = reinterpret_cast<uint64_t>(&getpid) + 4;
    while (made.WriteSample(TestSample(16, 100), {&key, 1})) {
    }
  }

  TscClock clock_;
  DrainLoop loop_{&clock_};
  std::vector<LiveTarget> live_;
};

TEST_F(DrainLoopTest, WhereNothingIsGoingOnThereIsNoHurry) {
  EXPECT_EQ(loop_.Turn(live_, FarEnd()), INT_MAX);
  TestTarget made;
  Add(made);
  EXPECT_EQ(loop_.Turn(live_, FarEnd()), INT_MAX);
}

TEST_F(DrainLoopTest, WhoeverComesIsLookedAtSoon) {
  loop_.NoteNews();
  const int wait_ms = loop_.Turn(live_, FarEnd());
  EXPECT_GE(wait_ms, 1);
  EXPECT_LE(wait_ms, 10);
}

TEST_F(DrainLoopTest, ARingThatFilledShortensTheWait) {
  TestTarget made;
  Add(made);
  loop_.NoteNews();
  for (int i = 0; i < 20; ++i)
    loop_.Turn(live_, FarEnd());
  Fill(made);
  EXPECT_EQ(loop_.Turn(live_, FarEnd()), 1);
  EXPECT_GT(made.target().profile().quality.samples, 0u);
}

// The turn is over before it begins: all are told that we move, none is read,
// and the next one goes on with those.
TEST_F(DrainLoopTest, WhatThereIsNoTimeForIsLeftForTheNextTurn) {
  TestTarget first;
  TestTarget second;
  for (TestTarget* made : {&first, &second}) {
    Add(*made);
    Fill(*made);
    made->memory().engine().control.heartbeat.store(0);
  }
  EXPECT_EQ(loop_.Turn(live_, /*turn_end_ns=*/0), 0);
  for (TestTarget* made : {&first, &second}) {
    EXPECT_NE(made->memory().engine().control.heartbeat.load(), 0u);
    EXPECT_EQ(made->target().profile().quality.samples, 0u);
  }
  while (loop_.Turn(live_, FarEnd()) == 0) {
  }
  for (TestTarget* made : {&first, &second})
    EXPECT_GT(made->target().profile().quality.samples, 0u);
}

}  // namespace
}  // namespace heapprofd
