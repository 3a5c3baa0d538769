// Waits for an engine whose heartbeat the test is. The session is the test's own, too.
#include "client/engine_link/engine_wait.h"

#include <gtest/gtest.h>

#include <memory>

#include "client/confinement.h"
#include "client/session.h"

namespace heapprofd {

constinit std::atomic<uint32_t> g_is_confined{0};
ClientSession g_session;

namespace {

constexpr uint64_t kShortNs = 1'000'000;

class EngineWaitTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_.engine = engine_.get();
    memory_.client = client_.get();
    g_session.memory.store(&memory_);
    Beat();
  }

  void TearDown() override { g_session.memory.store(nullptr); }

  // Beats are times: none is like another.
  void Beat() {
    static uint64_t beat = 0;
    engine_->control.heartbeat.store(++beat);
  }

  static void WaitInVain(EngineWait& wait) {
    while (wait.MayGoOn()) {
    }
  }

  std::unique_ptr<EngineBlock> engine_ = std::make_unique<EngineBlock>();
  std::unique_ptr<ClientBlock> client_ = std::make_unique<ClientBlock>();
  SessionMemory memory_{};
};

TEST_F(EngineWaitTest, WithoutASessionNothingStandsStill) {
  g_session.memory.store(nullptr);
  EXPECT_FALSE(StandsEngineStill());
}

TEST_F(EngineWaitTest, AWaitGoesOnWithinItsLimit) {
  EngineWait wait(kStandstillNs / 2);
  EXPECT_TRUE(wait.MayGoOn());
  EXPECT_FALSE(StandsEngineStill());
}

TEST_F(EngineWaitTest, AfterOneWaitInVainNobodyWaitsUntilTheEngineMoves) {
  EngineWait wait(kShortNs);
  WaitInVain(wait);
  EXPECT_GE(wait.waited_ns(), kShortNs);
  EXPECT_TRUE(StandsEngineStill());
  EngineWait another(kStandstillNs / 2);
  EXPECT_FALSE(another.MayGoOn());
  EXPECT_EQ(another.waited_ns(), 0u);
  Beat();
  EXPECT_FALSE(StandsEngineStill());
  EXPECT_TRUE(another.MayGoOn());
}

TEST_F(EngineWaitTest, WhatACallHasWaitedBeforeCounts) {
  EngineWait wait(kShortNs, kShortNs);
  EXPECT_FALSE(wait.MayGoOn());
  EXPECT_GE(wait.waited_ns(), kShortNs);
}

TEST_F(EngineWaitTest, WithoutALimitAStandstillEndsTheWaitAndMovementDoesNot) {
  EngineWait wait(/*limit_ns=*/0);
  EXPECT_TRUE(wait.MayGoOn());
  while (wait.waited_ns() <= kStandstillNs) {
    client_->ring.consumed_position.fetch_add(1);  // it reads, which is to move, too
    ASSERT_TRUE(wait.MayGoOn());
  }
  WaitInVain(wait);
  EXPECT_GE(wait.waited_ns(), 2 * kStandstillNs);
  EXPECT_TRUE(StandsEngineStill());
}

}  // namespace
}  // namespace heapprofd
