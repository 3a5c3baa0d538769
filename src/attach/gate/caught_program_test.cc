#include "attach/gate/caught_program.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>

namespace heapprofd {
namespace {

Status HooksFailed() {
  return Status(StatusCode::kUnavailable, "no hooks");
}

// Whoever has accepted it serves others meanwhile.
TEST(CaughtProgramTest, ThereIsNoConclusionUntilTheHooksAreIn) {
  CaughtProgram caught(nullptr);
  std::unique_ptr<AttachedProcess> process;
  caught.Accept();
  EXPECT_FALSE(caught.TakeConclusion(&process).has_value());
  caught.Conclude(HooksFailed());
  ASSERT_TRUE(caught.TakeConclusion(&process).has_value());
  EXPECT_EQ(caught.TakeConclusion(&process)->message(), "no hooks");
}

TEST(CaughtProgramTest, TheThreadHearsWhatIsDecidedWhileItWaits) {
  for (const bool is_accepted : {true, false}) {
    CaughtProgram caught(nullptr);
    std::thread session([&] {
      if (is_accepted)
        caught.Accept();
      else
        caught.Refuse();
    });
    EXPECT_EQ(caught.WaitForDecision(), is_accepted);
    session.join();
  }
}

// The program must not wait for a session that has no time.
TEST(CaughtProgramTest, AnAnswerThatComesTooLateAcceptsNothing) {
  CaughtProgram caught(nullptr);
  EXPECT_FALSE(caught.WaitForDecision());
  caught.Accept();
  EXPECT_FALSE(caught.WaitForDecision());
}

TEST(CaughtProgramTest, WhatIsRefusedIsAcceptedNoMore) {
  CaughtProgram caught(nullptr);
  caught.Refuse();
  caught.Accept();
  EXPECT_FALSE(caught.WaitForDecision());
}

}  // namespace
}  // namespace heapprofd
