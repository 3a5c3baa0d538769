// What can be told without attaching to anything; the rest needs programs
// (tests/e2e/attach_test.py).
#include "engine/session/attached_targets.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <string>

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
