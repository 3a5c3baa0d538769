// Programs that report, played by this very process; no session gets as far as to profile
// it. Real ones are in tests/e2e/service_test.py.
#include "service/recordings/program_admission.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

class ProgramAdmissionTest : public testing::Test {
 protected:
  Session* AddSession(pid_t pid) {
    SessionConfig config;
    config.targets.pids = {pid};
    owned_.push_back(Session::CreateWithoutSocket(config));
    sessions_.push_back(owned_.back().get());
    return sessions_.back();
  }

  // Says the first `bytes` of a Hello.
  void Say(size_t bytes = sizeof(Hello), uint32_t version = kWireVersion) {
    int fds[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    theirs_ = ScopedFd(fds[1]);
    Visitor visitor;
    visitor.connection = UntrustedSocket(ScopedFd(fds[0]));
    visitor.pid = getpid();
    visitor.user = geteuid();
    visitor.group = getegid();
    Hello hello{};
    hello.version = version;
    hello.origin = ClientOrigin::kStartup;
    EXPECT_EQ(send(theirs_.get(), &hello, bytes, 0), static_cast<ssize_t>(bytes));
    AdmitProgramTo(sessions_, std::move(visitor));
  }

  bool IsDeclined() const {
    Welcome welcome{};
    return recv(theirs_.get(), &welcome, sizeof(welcome), MSG_DONTWAIT) ==
               static_cast<ssize_t>(sizeof(welcome)) &&
           welcome.status == WelcomeStatus::kDecline;
  }

  std::vector<std::unique_ptr<Session>> owned_;
  Sessions sessions_;
  ScopedFd theirs_;
};

TEST_F(ProgramAdmissionTest, OneThatNobodyWantsIsDeclined) {
  Say();
  EXPECT_TRUE(IsDeclined());
  AddSession(getppid());
  Say();
  EXPECT_TRUE(IsDeclined());
}

TEST_F(ProgramAdmissionTest, HalfAHelloAndOneOfAnotherVersionAreDeclined) {
  AddSession(getpid());
  Say(sizeof(Hello) - 1);
  EXPECT_TRUE(IsDeclined());
  Say(sizeof(Hello), kWireVersion + 1);
  EXPECT_TRUE(IsDeclined());
  EXPECT_TRUE(sessions_[0]->targets().all().empty());
}

TEST_F(ProgramAdmissionTest, TheFirstThatWantsItHasItAndLaterOnesNoteThat) {
  AddSession(getppid());
  const Session* const first = AddSession(getpid());
  const Session* const later = AddSession(getpid());
  Say();
  EXPECT_TRUE(first->missed().taken().empty());
  ASSERT_EQ(later->missed().taken().size(), 1u);
  EXPECT_EQ(later->missed().taken()[0]->process.pid, getpid());
  EXPECT_EQ(IsRecordedBy(sessions_, getpid()), first->targets().IsProfiling(getpid()));
}

TEST_F(ProgramAdmissionTest, WhatCameTooLateIsNamedByWhoWantsIt) {
  const Session* const wants = AddSession(getpid());
  const Session* const does_not = AddSession(getppid());
  NoteMissedBy(sessions_, getpid());
  const std::vector<UnrecordedPrograms> missed = wants->programs().Unrecorded();
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(missed[0].reason, UnrecordedReason::kLate);
  EXPECT_EQ(missed[0].count, 1u);
  EXPECT_TRUE(does_not->programs().Unrecorded().empty());
}

}  // namespace
}  // namespace heapprofd
