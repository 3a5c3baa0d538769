// What can be told without hooks; the rest needs programs (tests/e2e/attach_test.py).
#include "engine/session/attached_targets.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <string>

#include "attach/thread/test_process.h"
#include "engine/session/caught_starts.h"
#include "engine/session/followed_families.h"
#include "engine/session/test_session_parts.h"

namespace heapprofd {
namespace {

class AttachedTargetsTest : public SessionPartTest {
 protected:
  CaughtStarts starts_{&context_, &attached_};
};

TEST_F(AttachedTargetsTest, AProcessThatIsGoneLeavesNothing) {
  const Status status = attached_.Attach(0x7fffffff);
  EXPECT_EQ(status.code(), StatusCode::kNotFound) << status.message();
  EXPECT_TRUE(targets_.all().empty());
  EXPECT_TRUE(attached_.reports().empty());
  EXPECT_FALSE(attached_.IsAttachingTo(0x7fffffff));
}

TEST_F(AttachedTargetsTest, WithoutRoomNothingIsTried) {
  UserBudget::Account others(&UserBudget::OfEngine(), getuid());
  others.Set(uint64_t{1} << 60);
  const Status status = attached_.Attach(getpid());
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(status.message().find("cannot attach to process " + std::to_string(getpid()) +
                                  ": the profiles of"),
            0u)
      << status.message();
  EXPECT_EQ(served_, 0);
}

// Whoever has its number by then would be looked at in its place.
TEST_F(AttachedTargetsTest, OneThatEndsWhenItsClientIsInPlaceIsNotLookedAt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's malloc cannot be patched everywhere";
#endif
  const TestProcess process;
  AllocatorFinder finder;
  const auto placed = AttachedProcess::Place(process.pid(), attached_.Options(), &finder);
  ASSERT_TRUE(placed.ok()) << placed.status().message();
  kill(process.pid(), SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process.pid()), &ended, WEXITED | WNOWAIT),
            0);
  const Result<Target*> target =
      attached_.Add(placed.value().get(), /*from_startup=*/false);
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.status().message(),
            "cannot attach to process " + std::to_string(process.pid()) +
                ": it has just ended or become another program; try again");
  EXPECT_TRUE(targets_.all().empty());
}

TEST_F(AttachedTargetsTest, OptionsAreThoseOfTheSession) {
  EXPECT_EQ(attached_.Options().ring_size, kMinRingSize);
  EXPECT_EQ(attached_.Options().children, ChildrenMode::kFollowed);
  SessionContext alone(SmallSession(/*follows_children=*/false), NoHooks());
  EXPECT_EQ(AttachedTargets(&alone).Options().children, ChildrenMode::kIgnored);
}

TEST_F(AttachedTargetsTest, WhoeverCatchesNothingHasNothingToWaitFor) {
  EXPECT_FALSE(starts_.is_catching());
  EXPECT_EQ(starts_.fd(), -1);
  starts_.Adopt();
  starts_.LeaveToParent();
  starts_.End();
  EXPECT_TRUE(targets_.all().empty());
  EXPECT_TRUE(context_.AllProblems().empty());
}

TEST_F(AttachedTargetsTest, WithoutTargetsNobodyIsFollowed) {
  FollowedFamilies families(&context_, &attached_, &starts_);
  families.Follow();
  families.Follow();
  EXPECT_EQ(served_, 0);
}

}  // namespace
}  // namespace heapprofd
