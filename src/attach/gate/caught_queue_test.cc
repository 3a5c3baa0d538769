#include "attach/gate/caught_queue.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace heapprofd {
namespace {

constexpr std::chrono::milliseconds kLong{60'000};

class CaughtQueueTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(queue_.Open().ok()); }

  bool IsReadable() const {
    pollfd fd{.fd = queue_.fd(), .events = POLLIN, .revents = 0};
    return poll(&fd, 1, 0) == 1;
  }

  CaughtQueue queue_;
};

TEST_F(CaughtQueueTest, WhatIsCaughtIsTakenOnce) {
  const auto caught = std::make_shared<CaughtProgram>(nullptr);
  EXPECT_FALSE(IsReadable());
  EXPECT_TRUE(queue_.Add(caught));
  EXPECT_TRUE(IsReadable());
  EXPECT_EQ(queue_.TakeCaught(), std::vector{caught});
  EXPECT_FALSE(IsReadable());
  EXPECT_TRUE(queue_.TakeCaught().empty());
}

TEST_F(CaughtQueueTest, AConclusionIsSeenWithoutAnotherProgram) {
  queue_.Raise();
  EXPECT_TRUE(IsReadable());
  EXPECT_TRUE(queue_.TakeCaught().empty());
  EXPECT_FALSE(IsReadable());
}

TEST_F(CaughtQueueTest, WhoeverIsToEndWaitsForNobody) {
  const auto caught = std::make_shared<CaughtProgram>(nullptr);
  EXPECT_TRUE(queue_.Add(caught));
  EXPECT_FALSE(queue_.is_stopping());
  queue_.AskToEnd();
  EXPECT_TRUE(queue_.is_stopping());
  caught->Accept();
  EXPECT_FALSE(caught->WaitForDecision());
  EXPECT_FALSE(queue_.Add(std::make_shared<CaughtProgram>(nullptr)));
}

TEST_F(CaughtQueueTest, TheEndOfTheThreadIsSeen) {
  EXPECT_FALSE(queue_.WaitUntilOver(std::chrono::milliseconds(0)));
  std::thread catcher([this] { queue_.NoteOver(); });
  EXPECT_TRUE(queue_.WaitUntilOver(kLong));
  catcher.join();
}

TEST_F(CaughtQueueTest, TheEndOfTheGateIsToldOnceAndNotWhenItWasWanted) {
  queue_.NoteEndOfGate();
  queue_.NoteEndOfGate();
  const std::vector<std::string> problems = queue_.TakeProblems();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].find("cannot catch programs that have started since "), 0u);
  CaughtQueue ended;
  ended.AskToEnd();
  ended.NoteEndOfGate();
  EXPECT_TRUE(ended.TakeProblems().empty());
}

TEST_F(CaughtQueueTest, ProgramsThatAreGoneAreNoProblem) {
  queue_.NoteProblem({});
  queue_.NoteProblem(Status(StatusCode::kNotFound, "gone"));
  queue_.NoteProblem(Status(StatusCode::kTryAgain, "it was about to change"));
  EXPECT_EQ(queue_.TakeProblems(), std::vector<std::string>({"it was about to change"}));
  EXPECT_TRUE(queue_.TakeProblems().empty());
}

TEST_F(CaughtQueueTest, ProblemsThatNobodyTakesHaveABound) {
  for (int i = 0; i < 5000; ++i)
    queue_.NoteProblem(Status(StatusCode::kUnavailable, "cannot"));
  const std::vector<std::string> problems = queue_.TakeProblems();
  EXPECT_EQ(problems.size(), 1001u);
  EXPECT_EQ(problems.back(), "there were more problems of the kind; not all are shown");
}

}  // namespace
}  // namespace heapprofd
