// Targets of this very process, whose lives are those of children that wait.
#include "engine/session/session_targets.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/target/test_target.h"

namespace heapprofd {
namespace {

class SessionTargetsTest : public testing::Test {
 protected:
  ~SessionTargetsTest() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

  // The process that a target stands for.
  ScopedFd StartProcess() {
    const pid_t child = fork();
    if (child == 0) {
      while (true)
        pause();
    }
    children_.push_back(child);
    return ScopedFd(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  }

  // Without reaping: its descriptor tells.
  void EndProcess(size_t index) const {
    kill(children_[index], SIGKILL);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(children_[index]), &info, WEXITED | WNOWAIT);
  }

  LiveTarget& Add(TestTarget& made) {
    clock_.Update();
    return targets_.Add(made.Take(), StartProcess());
  }

  static bool WriteOne(TestTarget& made) {
    const uint64_t key = reinterpret_cast<uint64_t>(&getpid) + 4;
    return made.WriteSample(TestSample(16, 100), {&key, 1});
  }

  TscClock clock_;
  ProgramWatch programs_;
  std::vector<std::string> problems_;
  std::vector<pid_t> children_;
  SessionTargets targets_{
      &clock_, &programs_,
      [this](std::string problem) { problems_.push_back(std::move(problem)); },
      [](const std::shared_ptr<AttachedProcess>&) {}};
};

TEST_F(SessionTargetsTest, ATargetIsReadWhileItLivesAndKeptWhenItHasEnded) {
  TestTarget made;
  const Target* target = Add(made).target;
  EXPECT_TRUE(targets_.IsProfiling(getpid()));
  EXPECT_EQ(targets_.CountReporting(), 1u);
  ASSERT_TRUE(WriteOne(made));
  EXPECT_NE(targets_.Drain(FarEnd()), INT_MAX);
  EXPECT_EQ(target->profile().quality.samples, 1u);
  targets_.ReapExited();
  EXPECT_EQ(targets_.CountReporting(), 1u);

  ASSERT_TRUE(WriteOne(made));  // the last thing that it does
  EndProcess(0);
  targets_.ReapExited();
  EXPECT_FALSE(targets_.IsProfiling(getpid()));
  EXPECT_EQ(targets_.CountReporting(), 0u);
  targets_.ReleaseEnded();
  EXPECT_EQ(targets_.live().size(), 1u);  // not before its ring is read
  targets_.Drain(FarEnd());
  targets_.ReleaseEnded();
  EXPECT_TRUE(targets_.live().empty());
  ASSERT_EQ(targets_.all().size(), 1u);
  EXPECT_FALSE(target->is_recording());
  EXPECT_EQ(target->profile().end, TargetEnd::kExited);
  EXPECT_EQ(target->profile().quality.samples, 2u);
  EXPECT_TRUE(problems_.empty());
}

TEST_F(SessionTargetsTest, OneThatNeverBeganHadNoSpace) {
  TestTarget made;
  Add(made);
  EndProcess(0);
  targets_.ReapExited();
  targets_.Drain(FarEnd());
  targets_.ReleaseEnded();
  const std::vector<UnrecordedPrograms> unrecorded = programs_.Unrecorded();
  ASSERT_EQ(unrecorded.size(), 1u);
  EXPECT_EQ(unrecorded[0].reason, UnrecordedReason::kNoSpace);
}

TEST_F(SessionTargetsTest, OneThatExecutesAProgramEndsOnce) {
  TestTarget first;
  TestTarget second;
  Add(first);
  targets_.NoteExec(getpid());
  EXPECT_EQ(targets_.live()[0].target->profile().end, TargetEnd::kExeced);
  Add(second);
  targets_.NoteExec(getpid());
  EXPECT_EQ(targets_.CountReporting(), 0u);
  targets_.NoteExec(getpid());
  targets_.NoteExec(1);
  EXPECT_EQ(targets_.live().size(), 2u);
}

TEST_F(SessionTargetsTest, WhatIsForgottenNeverWas) {
  TestTarget made;
  const Target* target = Add(made).target;
  EXPECT_NE(targets_.Find(target), nullptr);
  targets_.Forget(target);
  EXPECT_EQ(targets_.Find(target), nullptr);
  EXPECT_TRUE(targets_.all().empty());
  EXPECT_TRUE(targets_.live().empty());
}

TEST_F(SessionTargetsTest, AtTheEndAllIsReadAndThoseThatLiveGoOn) {
  TestTarget made;
  made.client().ring.slot_count.store(1);
  const Target* target = Add(made).target;
  ASSERT_TRUE(WriteOne(made));
  int calls = 0;
  targets_.StopAll([&calls] { ++calls; });
  EXPECT_GT(calls, 0);
  EXPECT_TRUE(targets_.live().empty());
  EXPECT_EQ(target->profile().end, TargetEnd::kRunning);
  EXPECT_EQ(target->profile().quality.samples, 1u);
  EXPECT_TRUE(programs_.Unrecorded().empty());
}

TEST_F(SessionTargetsTest, WithoutMemoryForItsUserThereIsNoRoom) {
  EXPECT_TRUE(targets_.CheckRoom(getpid()).ok());
  UserBudget::Account others(&UserBudget::OfEngine(), getuid());
  others.Set(uint64_t{1} << 60);
  EXPECT_EQ(targets_.CheckRoom(getpid()).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace heapprofd
