// Sessions with real processes: programs under the preload library, and peers that are
// none.
#include "engine/session.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "base/files/late_user.h"
#include "engine/tsc_clock.h"
#include "engine/user_budget.h"
#include "wire/control.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr auto kDeadline = std::chrono::seconds(60);
constexpr int kWaitMs = 20;

class SessionTest : public testing::Test {
 protected:
  void SetUp() override { config_.interval_bytes = 1; }

  void TearDown() override {
    if (program_ > 0) {
      kill(program_, SIGKILL);
      waitpid(program_, nullptr, 0);
    }
  }

  void Create() {
    Result<std::unique_ptr<Session>> session = Session::Create(config_);
    ASSERT_TRUE(session.ok()) << session.status().message();
    session_ = std::move(session).value();
  }

  void Start(const std::string& program, const std::string& argument) {
    program_ = fork();
    ASSERT_GE(program_, 0);
    if (program_ != 0)
      return;
    setenv("LD_PRELOAD", HPD_TEST_PRELOAD, 1);
    setenv(kSessionVariable, session_->EnvironmentFor(getpid()).c_str(), 1);
    const std::string path = HPD_TEST_PROGRAMS "/" + program;
    execl(path.c_str(), path.c_str(), argument.c_str(), nullptr);
    _exit(127);
  }

  // Serves the session until `condition` holds.
  void ServeUntil(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      session_->Poll(kWaitMs, -1);
    }
  }

  // Serves the session until the program has ended and its data is there; its status.
  int ServeToTheEnd() {
    int status = -1;
    bool is_running = true;
    ServeUntil([&] {
      if (is_running && waitpid(program_, &status, WNOHANG) == program_)
        is_running = false;
      return !is_running && session_->targets().size() == 0;
    });
    program_ = -1;
    return status;
  }

  // A connection to the session's socket by this process.
  ScopedFd Connect() const {
    ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, session_->socket()->path().c_str(),
            sizeof(address.sun_path) - 1);
    EXPECT_EQ(
        connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
        0)
        << strerror(errno);
    return fd;
  }

  SessionConfig config_;
  std::unique_ptr<Session> session_;
  pid_t program_ = -1;
};

// Half of them, which is when they are looked at; by a thread that there is none of.
void OwnForkSlots(Target* target) {
  constexpr uint64_t kNobody = kForkSlotOwned | (INT32_MAX - 1);
  ClientBlock& client = target->recorder().memory().client();
  client.fork_slots[0].slot.thread_pointer.store(kNobody);
  client.ring.fork_slot_count.store(kMaxForkSlots / 2);
}

bool HasOwnedForkSlot(Target* target) {
  return target->recorder().memory().client().fork_slots[0].slot.thread_pointer.load() !=
         0;
}

TEST_F(SessionTest, NobodyWaitsForASessionThatIsOver) {
  Create();
  session_->Stop();
  const ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, session_->socket()->path().c_str(),
          sizeof(address.sun_path) - 1);
  EXPECT_NE(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

TEST_F(SessionTest, AProgramIsRecordedFromItsFirstToItsLastAllocation) {
  ASSERT_NO_FATAL_FAILURE(Create());
  ASSERT_NO_FATAL_FAILURE(Start("exits", "return"));
  const pid_t pid = program_;
  EXPECT_EQ(WEXITSTATUS(ServeToTheEnd()), 7);
  session_->Stop();
  ASSERT_EQ(session_->targets().all().size(), 1u);
  const TargetProfile& profile = session_->targets().all()[0]->profile();
  EXPECT_EQ(profile.process.pid, pid);
  EXPECT_EQ(profile.process.parent_pid, getpid());
  EXPECT_EQ(profile.end, TargetEnd::kExited);
  ASSERT_EQ(profile.heaps.size(), 1u);
  EXPECT_GE(profile.heaps[0].exact_alloc_calls, 1000u);
  EXPECT_EQ(profile.quality.samples, profile.heaps[0].exact_alloc_calls);
  EXPECT_EQ(profile.quality.lost_records, 0u);
  EXPECT_EQ(profile.quality.corrupt_records, 0u);
}

TEST_F(SessionTest, WhatAKilledProgramRecordedIsKept) {
  ASSERT_NO_FATAL_FAILURE(Create());
  ASSERT_NO_FATAL_FAILURE(Start("exits", "sigkill"));
  EXPECT_EQ(WTERMSIG(ServeToTheEnd()), SIGKILL);
  ASSERT_EQ(session_->targets().all().size(), 1u);
  EXPECT_GE(session_->targets().all()[0]->profile().heaps.at(0).exact_alloc_bytes,
            1'000'000u);
}

TEST_F(SessionTest, StoppingWhileTheProgramRunsKeepsItsDumpAndLetsItRun) {
  ASSERT_NO_FATAL_FAILURE(Create());
  ASSERT_NO_FATAL_FAILURE(Start("exits", "wait"));
  ASSERT_NO_FATAL_FAILURE(ServeUntil([&] {
    return session_->targets().size() == 1 &&
           session_->targets().all()[0]->profile().quality.samples >= 1000;
  }));
  session_->Stop();
  EXPECT_EQ(session_->targets().size(), 0u);
  const TargetProfile& profile = session_->targets().all()[0]->profile();
  EXPECT_EQ(profile.end, TargetEnd::kRunning);
  EXPECT_GE(profile.heaps.at(0).exact_alloc_calls, 1000u);
  EXPECT_EQ(kill(program_, 0), 0);
}

TEST_F(SessionTest, AfterTheEndNobodyWaitsForAWelcome) {
  ASSERT_NO_FATAL_FAILURE(Create());
  session_->Stop();
  ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, session_->socket()->path().c_str(),
          sizeof(address.sun_path) - 1);
  EXPECT_NE(
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  session_->Poll(0, -1);
}

TEST_F(SessionTest, ChildrenAndExecsAreTargetsOfTheirOwn) {
  ASSERT_NO_FATAL_FAILURE(Create());
  ASSERT_NO_FATAL_FAILURE(Start("forker", "all"));
  const pid_t pid = program_;
  EXPECT_EQ(ServeToTheEnd(), 0);
  ASSERT_EQ(session_->targets().all().size(),
            4u);  // itself, fork, posix_spawn, fork + exec
  int children = 0;
  for (const std::unique_ptr<Target>& target : session_->targets().all())
    children += target->profile().process.parent_pid == pid ? 1 : 0;
  EXPECT_EQ(children, 3);
}

TEST_F(SessionTest, AnExecWithinOneProcessEndsOneTargetAndBeginsAnother) {
  ASSERT_NO_FATAL_FAILURE(Create());
  program_ = fork();
  ASSERT_GE(program_, 0);
  if (program_ == 0) {
    setenv("LD_PRELOAD", HPD_TEST_PRELOAD, 1);
    setenv(kSessionVariable, session_->EnvironmentFor(getpid()).c_str(), 1);
    execl("/bin/sh", "sh", "-c", "exec " HPD_TEST_PROGRAMS "/exits return", nullptr);
    _exit(127);
  }
  EXPECT_EQ(WEXITSTATUS(ServeToTheEnd()), 7);
  ASSERT_EQ(session_->targets().all().size(), 2u);
  EXPECT_EQ(session_->targets().all()[0]->profile().end, TargetEnd::kExeced);
  EXPECT_EQ(session_->targets().all()[1]->profile().end, TargetEnd::kExited);
  EXPECT_EQ(session_->targets().all()[0]->pid(), session_->targets().all()[1]->pid());
}

TEST_F(SessionTest, WithoutChildrenOnlyTheProgramItselfReports) {
  config_.follow_children = false;
  ASSERT_NO_FATAL_FAILURE(Create());
  ASSERT_NO_FATAL_FAILURE(Start("forker", "all"));
  EXPECT_EQ(ServeToTheEnd(), 0);
  EXPECT_EQ(session_->targets().all().size(), 1u);
}

TEST_F(SessionTest, TheSocketIsPrivateAndGoneWithTheSession) {
  ASSERT_NO_FATAL_FAILURE(Create());
  const std::string socket = session_->socket()->path();
  const std::string folder = socket.substr(0, socket.rfind('/'));

  struct stat status {};

  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0066, 0u);  // nobody else may list or change it
  if (geteuid() == 0) {  // who knows it can come in: nobody learns its name
    const std::string parent = folder.substr(0, folder.rfind('/'));
    ASSERT_EQ(stat(parent.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0711u);
    std::ifstream sockets("/proc/net/unix");
    const std::string listed{std::istreambuf_iterator<char>(sockets), {}};
    EXPECT_NE(listed.find("/new"), std::string::npos);  // as it was bound
    EXPECT_EQ(listed.find(folder.substr(parent.size())), std::string::npos);
  }
  session_.reset();
  EXPECT_NE(stat(folder.c_str(), &status), 0);
}

TEST_F(SessionTest, PeersThatSayNothingOrNonsenseAreNoTargetsAndHoldNobodyUp) {
  ASSERT_NO_FATAL_FAILURE(Create());
  session_->socket()->set_control_handler([](const ScopedFd&) {});
  std::vector<ScopedFd> peers;
  for (int i = 0; i < 100; ++i) {
    peers.push_back(Connect());  // silent
    for (const std::string& text :
         {std::string("half"), std::string(4096, 'x'),
          std::string(reinterpret_cast<const char*>(&kHandshakeMagic), 8),
          std::string(reinterpret_cast<const char*>(&kExecNoticeMagic), 8),
          std::string(reinterpret_cast<const char*>(&kControlMagic), 8)}) {
      peers.push_back(Connect());
      ASSERT_EQ(send(peers.back().get(), text.data(), text.size(), 0),
                static_cast<ssize_t>(text.size()));
    }
  }
  ASSERT_NO_FATAL_FAILURE(Start("exits", "return"));
  EXPECT_EQ(WEXITSTATUS(ServeToTheEnd()), 7);
  ASSERT_EQ(session_->targets().all().size(), 1u);
  for (const ScopedFd& peer : peers) {
    Welcome welcome{.magic = 0,
                    .version = 0,
                    .status = WelcomeStatus::kWait,
                    .ring_size = 0,
                    .seed = 0};
    recv(peer.get(), &welcome, sizeof(welcome), MSG_DONTWAIT);
    EXPECT_EQ(welcome.status, WelcomeStatus::kWait);  // said in a crowd
  }
  EXPECT_TRUE(session_->programs().Unrecorded().empty());
}

TEST_F(SessionTest, AProcessThatIsGoneBeforeItIsAnsweredIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Create());
  program_ = fork();
  ASSERT_GE(program_, 0);
  if (program_ == 0) {
    const Hello hello{.magic = kHandshakeMagic,
                      .version = kWireVersion,
                      .origin = ClientOrigin::kStartup,
                      .tsc = 0};
    const ScopedFd peer = Connect();
    _exit(send(peer.get(), &hello, sizeof(hello), 0) == sizeof(hello) ? 0 : 1);
  }
  session_->newcomers().Expect(program_, "brief");
  int status = -1;
  ASSERT_EQ(waitpid(program_, &status, 0), program_);
  program_ = -1;
  ASSERT_EQ(status, 0);
  session_->Poll(kWaitMs, -1);
  const std::vector<UnrecordedPrograms> missed = session_->programs().Unrecorded();
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(missed[0].reason, UnrecordedReason::kLate);
  EXPECT_EQ(missed[0].names, std::vector<std::string>({"brief"}));
}

TEST_F(SessionTest, WhoseUserHasUsedUpHisMemoryIsDeclinedAndCounted) {
  ASSERT_NO_FATAL_FAILURE(Create());
  UserBudget::Account others(&UserBudget::OfEngine(), getuid());
  others.Set(uint64_t{1} << 60);
  ASSERT_NO_FATAL_FAILURE(Start("exits", "return"));
  EXPECT_EQ(WEXITSTATUS(ServeToTheEnd()), 7);
  EXPECT_TRUE(session_->targets().all().empty());
  const std::vector<UnrecordedPrograms> unrecorded = session_->programs().Unrecorded();
  ASSERT_EQ(unrecorded.size(), 1u);
  EXPECT_EQ(unrecorded[0].reason, UnrecordedReason::kDeclined);
  EXPECT_EQ(unrecorded[0].count, 1u);
  EXPECT_NE(unrecorded[0].names.at(0).find("memory"), std::string::npos);
}

// A look takes time, which is taken from all others' turns.
TEST_F(SessionTest, EndedOwnersOfForkSlotsAreLookedForByOneTargetAtATime) {
  ASSERT_NO_FATAL_FAILURE(Create());
  ASSERT_NO_FATAL_FAILURE(Start("exits", "wait"));
  const pid_t first = program_;
  ASSERT_NO_FATAL_FAILURE(Start("exits", "wait"));
  ASSERT_NO_FATAL_FAILURE(
      ServeUntil([this] { return session_->targets().CountReporting() == 2; }));
  std::vector<Target*> targets;
  for (const auto& target : session_->targets().all())
    targets.push_back(target.get());
  for (int look = 0; look < 3; ++look) {
    for (Target* target : targets)
      OwnForkSlots(target);
    int turn = 0;
    ASSERT_NO_FATAL_FAILURE(ServeUntil([&] {
      // Of many lengths, so that looks are broken off.
      session_->Serve(MonotonicNs() + (uint64_t{1000} << ++turn % 10));
      const auto looks = [](Target* target) { return target->children().is_looking(); };
      EXPECT_LE(std::ranges::count_if(targets, looks), 1);
      return std::ranges::none_of(targets, HasOwnedForkSlot);
    }));
  }
  kill(first, SIGKILL);
  waitpid(first, nullptr, 0);
}

TEST_F(SessionTest, AClientOfAnotherVersionIsDeclined) {
  ASSERT_NO_FATAL_FAILURE(Create());
  const ScopedFd peer = Connect();
  const Hello hello{.magic = kHandshakeMagic,
                    .version = kWireVersion + 1,
                    .origin = ClientOrigin::kStartup,
                    .tsc = 0};
  ASSERT_EQ(send(peer.get(), &hello, sizeof(hello), 0),
            static_cast<ssize_t>(sizeof(hello)));
  Welcome welcome{};
  ASSERT_NO_FATAL_FAILURE(ServeUntil([&] {
    return recv(peer.get(), &welcome, sizeof(welcome), MSG_DONTWAIT) ==
           static_cast<ssize_t>(sizeof(welcome));
  }));
  EXPECT_EQ(welcome.status, WelcomeStatus::kDecline);
  EXPECT_TRUE(session_->targets().all().empty());
}

class ExecNoticeTest : public SessionTest {
 protected:
  // Says it as a client would, and lets the session hear it.
  void Say(ExecOutcome outcome, int32_t pid, const std::string& program) {
    ExecNotice notice{};
    notice.magic = kExecNoticeMagic;
    notice.version = kWireVersion;
    notice.outcome = outcome;
    notice.time_ns = MonotonicNs();
    notice.pid = pid;
    notice.keeps_session = 1;
    memcpy(notice.program, program.data(),
           std::min(program.size(), sizeof(notice.program)));
    const ScopedFd peer = Connect();
    ASSERT_EQ(send(peer.get(), &notice, sizeof(notice), 0),
              static_cast<ssize_t>(sizeof(notice)));
    session_->Poll(kWaitMs, -1);
  }
};

TEST_F(ExecNoticeTest, AProgramThatIsSaidToStartIsMissedUnlessItFailedTo) {
  ASSERT_NO_FATAL_FAILURE(Create());
  ASSERT_NO_FATAL_FAILURE(
      Say(ExecOutcome::kAttempt, 100, HPD_TEST_PROGRAMS "/static_hello"));
  ASSERT_NO_FATAL_FAILURE(Say(ExecOutcome::kAttempt, 200, "/bin/true"));
  ASSERT_NO_FATAL_FAILURE(Say(ExecOutcome::kFailed, 200, ""));
  const std::vector<UnrecordedPrograms> missed = session_->programs().Unrecorded();
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(missed[0].reason, UnrecordedReason::kStatic);
  EXPECT_EQ(missed[0].count, 1u);
}

TEST_F(ExecNoticeTest, ANameWithoutEndAndAProcessThatIsNoneAreNoTrap) {
  ASSERT_NO_FATAL_FAILURE(Create());
  ASSERT_NO_FATAL_FAILURE(Say(ExecOutcome::kAttempt, -1, std::string(1000, 'x')));
  ASSERT_NO_FATAL_FAILURE(Say(ExecOutcome::kAttempt, 0, ""));
  ASSERT_NO_FATAL_FAILURE(Say(ExecOutcome::kAttempt, INT32_MAX, "/dev/zero"));
  const std::vector<UnrecordedPrograms> missed = session_->programs().Unrecorded();
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(missed[0].reason, UnrecordedReason::kNotLoaded);
  EXPECT_EQ(missed[0].count, 3u);
}

TEST_F(SessionTest, AnExpectedProgramThatReportsIsNotMissed) {
  ASSERT_NO_FATAL_FAILURE(Create());
  ASSERT_NO_FATAL_FAILURE(Start("exits", "return"));
  session_->newcomers().Expect(program_, "exits");
  ServeToTheEnd();
  session_->Stop();
  EXPECT_TRUE(session_->programs().Unrecorded().empty());
}

TEST_F(SessionTest, WhatWasNotReadInTimeIsTold) {
  Create();
  const auto is_told = [this] {
    const std::vector<std::string> problems = session_->attach_problems();
    return std::any_of(problems.begin(), problems.end(), [](const std::string& problem) {
      return problem.find("had no answer in time") != std::string::npos;
    });
  };
  EXPECT_FALSE(is_told());
  const LateUser mallory({.id = 61001});
  EXPECT_TRUE(is_told());
}

}  // namespace
}  // namespace heapprofd
