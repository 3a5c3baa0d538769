// Programs that report, played by this very process.
#include "engine/session/newcomers.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/session/test_session_parts.h"

namespace heapprofd {
namespace {

class NewcomersTest : public SessionPartTest {
 protected:
  NewcomersTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours_ = ScopedFd(ends[0]);
    theirs_ = ScopedFd(ends[1]);
  }

  Status Adopt() {
    return newcomers_.Adopt(
        {.pid = getpid(),
         .user = getuid(),
         .group = getgid(),
         .connection = ours_.get(),
         .process = ScopedFd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))),
         .from_startup = false});
  }

  Welcome Answer() const {
    Welcome welcome{};
    EXPECT_EQ(recv(theirs_.get(), &welcome, sizeof(welcome), MSG_DONTWAIT),
              static_cast<ssize_t>(sizeof(welcome)));
    return welcome;
  }

  Newcomers newcomers_{&context_, &attached_};
  ScopedFd ours_;
  ScopedFd theirs_;
};

TEST_F(NewcomersTest, OneThatIsTakenInGetsItsMemory) {
  ASSERT_TRUE(Adopt().ok());
  const Welcome welcome = Answer();
  EXPECT_EQ(welcome.status, WelcomeStatus::kProfile);
  EXPECT_EQ(welcome.ring_size, kMinRingSize);
  ASSERT_EQ(targets_.all().size(), 1u);
  EXPECT_FALSE(targets_.all()[0]->profile().from_startup);
  EXPECT_TRUE(targets_.IsProfiling(getpid()));
  EXPECT_TRUE(programs_.Unrecorded().empty());
}

TEST_F(NewcomersTest, OneThatReportsAgainHasBecomeAnotherProgram) {
  ASSERT_TRUE(Adopt().ok());
  ASSERT_TRUE(Adopt().ok());
  ASSERT_EQ(targets_.all().size(), 2u);
  EXPECT_EQ(targets_.all()[0]->profile().end, TargetEnd::kExeced);
  EXPECT_EQ(targets_.CountReporting(), 1u);
}

TEST_F(NewcomersTest, OneThatDoesNotWaitAnyMoreIsLate) {
  theirs_.reset();
  EXPECT_FALSE(Adopt().ok());
  EXPECT_TRUE(targets_.all().empty());
  ASSERT_EQ(programs_.Unrecorded().size(), 1u);
  EXPECT_EQ(programs_.Unrecorded()[0].reason, UnrecordedReason::kLate);
}

TEST_F(NewcomersTest, OneWithTheRightsOfAnotherIsDeclinedWithTheReason) {
  const Status status = newcomers_.Adopt(
      {.pid = getpid(),
       .user = getuid() + 1,
       .group = getgid(),
       .connection = ours_.get(),
       .process = ScopedFd(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))),
       .from_startup = true});
  EXPECT_NE(status.message().find("with other rights"), std::string::npos);
  ASSERT_EQ(programs_.Unrecorded().size(), 1u);
  EXPECT_EQ(programs_.Unrecorded()[0].reason, UnrecordedReason::kDeclined);
}

TEST_F(NewcomersTest, AProgramThatIsExpectedAndNeverReportsIsMissed) {
  newcomers_.Expect(4711, "/no/such/program");
  ASSERT_EQ(programs_.Unrecorded().size(), 1u);
  EXPECT_EQ(programs_.Unrecorded()[0].count, 1u);
}

TEST_F(NewcomersTest, ExecsAreMissedWhereChildrenAreFollowed) {
  SessionContext alone(SmallSession(/*follows_children=*/false), NoHooks());
  ExecNotice notice{};
  notice.pid = 4711;
  notice.time_ns = MonotonicNs();
  memcpy(notice.program, "prog", 5);
  Newcomers(&alone, &attached_).OnExecNotice(notice, getpid());
  EXPECT_TRUE(alone.programs().Unrecorded().empty());
  newcomers_.OnExecNotice(notice, getpid());
  ASSERT_EQ(programs_.Unrecorded().size(), 1u);
  EXPECT_EQ(programs_.Unrecorded()[0].reason, UnrecordedReason::kCleanedEnvironment);
  notice.outcome = ExecOutcome::kFailed;
  newcomers_.OnExecNotice(notice, getpid());
  EXPECT_TRUE(programs_.Unrecorded().empty());
}

}  // namespace
}  // namespace heapprofd
