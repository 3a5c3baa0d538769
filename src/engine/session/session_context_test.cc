#include "engine/session/session_context.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/session/test_session_parts.h"
#include "engine/target/test_target.h"

namespace heapprofd {
namespace {

class SessionContextTest : public testing::Test {
 protected:
  // This very process.
  Target* AddTarget(TestTarget& made) {
    ScopedFd process(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
    return context_.targets().Add(made.Take(), std::move(process)).target;
  }

  SessionContext context_{SmallSession(/*follows_children=*/true), NoHooks()};
};

TEST_F(SessionContextTest, ItsClockRunsFromTheBegin) {
  EXPECT_GT(context_.clock().last_ns(), 0u);
}

TEST_F(SessionContextTest, RingsAreReadWhileSomebodyWaits) {
  TestTarget made;
  const Target* target = AddTarget(made);
  const uint64_t key = KeyInOwnCode(4);
  ASSERT_TRUE(made.WriteSample(TestSample(16, 100), {&key, 1}));
  context_.ServeMeanwhile();  // nobody else is to be served
  EXPECT_EQ(target->profile().quality.samples, 1u);
}

TEST_F(SessionContextTest, OthersAreServedWhileSomebodyWaits) {
  int served = 0;
  context_.set_between([&served] { ++served; });
  const std::function<void()> meanwhile = context_.meanwhile();
  meanwhile();
  meanwhile();
  EXPECT_EQ(served, 2);
}

TEST_F(SessionContextTest, ATargetsStartHadNoProblem) {
  const std::string problem =
      "cannot attach to process " + std::to_string(getpid()) + ": it is busy; wait";
  context_.problems().NoteStart(problem);
  EXPECT_EQ(context_.AllProblems(), std::vector<std::string>({problem}));
  TestTarget made;
  AddTarget(made);
  EXPECT_TRUE(context_.AllProblems().empty());
}

}  // namespace
}  // namespace heapprofd
