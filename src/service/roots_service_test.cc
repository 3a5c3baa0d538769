// Root's service and the processes of all users that connect to it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files/own_rights.h"
#include "sandbox/sandbox.h"
#include "service/service.h"
#include "wire/control.h"
#include "wire/handshake.h"
#include "wire/service_place.h"

namespace heapprofd {
namespace {

constexpr uid_t kAlice = 61001;
constexpr uid_t kMallory = 61002;
constexpr char kServed[] = "served";
constexpr char kImpossible[] = "impossible";

// In a new user name space, with this map of its ids. Only a process outside may write
// maps that are not of one's own id alone.
bool EnterUserNamespace(const char* map) {
  std::array<int, 2> go{};
  if (pipe2(go.data(), O_CLOEXEC) != 0)
    return false;
  const std::string path = "/proc/" + std::to_string(getpid()) + "/uid_map";
  const pid_t writer = fork();
  if (writer == 0) {
    close(go[1]);
    char byte = 0;
    const bool is_told = read(go[0], &byte, 1) == 1;
    std::ofstream file(path);
    _exit(is_told && file << map << std::flush ? 0 : 1);
  }
  const bool is_inside = unshare(CLONE_NEWUSER) == 0 && write(go[1], "x", 1) == 1;
  close(go[1]);
  int status = 0;
  return waitpid(writer, &status, 0) == writer && is_inside && status == 0;
}

bool EnterPidNamespace() {
  if (unshare(CLONE_NEWPID) != 0)
    return false;
  const pid_t first = fork();
  if (first > 0) {
    waitpid(first, nullptr, 0);
    _exit(0);
  }
  return first == 0;
}

bool LoseCapabilities(uint64_t keep) {
  return DropCapabilities(keep).ok();
}

bool BecomeOrdinary(uid_t user) {
  return BecomeUser(user, user, {}).ok();
}

ScopedFd ConnectTo(const std::string& path) {
  ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
    fd.reset();
  return fd;
}

template <typename Message>
ScopedFd Say(const std::string& path, const Message& message) {
  ScopedFd fd = ConnectTo(path);
  const bool is_said = send(fd.get(), &message, sizeof(message), MSG_NOSIGNAL) ==
                       static_cast<ssize_t>(sizeof(message));
  return is_said ? std::move(fd) : ScopedFd();
}

// What a command is told: kServed, or why it is not.
std::string AskAsCommand(const std::string& path) {
  const ControlHeader prepare{
      .magic = kControlMagic, .type = ControlType::kPrepare, .payload_size = 0};
  const ScopedFd fd = Say(path, prepare);
  ControlHeader answer{};
  if (recv(fd.get(), &answer, sizeof(answer), MSG_WAITALL) !=
      static_cast<ssize_t>(sizeof(answer)))
    return "no answer";
  std::string text(answer.payload_size, '\0');
  if (!text.empty() && recv(fd.get(), text.data(), text.size(), MSG_WAITALL) < 0)
    return "half an answer";
  return answer.type == ControlType::kReady ? kServed : text;
}

Hello HelloOfStart() {
  Hello hello{};
  hello.magic = kHandshakeMagic;
  hello.version = kWireVersion;
  hello.origin = ClientOrigin::kStartup;
  return hello;
}

// What a program is told that no recording wants.
std::string AskAsProgram(const std::string& path) {
  const ScopedFd fd = Say(path, HelloOfStart());
  Welcome welcome{};
  do {
    if (recv(fd.get(), &welcome, sizeof(welcome), MSG_WAITALL) !=
        static_cast<ssize_t>(sizeof(welcome)))
      return "no answer";
  } while (welcome.status == WelcomeStatus::kWait);
  return welcome.status == WelcomeStatus::kDecline ? kServed : "another answer";
}

class RootsServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0)
      GTEST_SKIP() << "only root can be several users";
    std::string pattern = testing::TempDir() + "/hpdXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    place_ = pattern;
    socket_ = place_ + kSocketName;
  }

  void TearDown() override {
    service_.reset();
    directory_.reset();
    if (!place_.empty())
      std::filesystem::remove_all(place_);
  }

  void Open() {
    Result<std::unique_ptr<RuntimeDirectory>> directory = RuntimeDirectory::Open(place_);
    ASSERT_TRUE(directory.ok()) << directory.status().message();
    directory_ = std::move(directory).value();
    Result<std::unique_ptr<Door>> door = Door::Open(directory_.get(), ScopedFd());
    ASSERT_TRUE(door.ok()) << door.status().message();
    service_ = std::make_unique<Service>(std::move(door).value(), place_, ServiceHooks{});
  }

  // What a process is told by the service, which `become` has made something else.
  template <typename Become, typename Ask>
  std::string AnswerToOneThat(const Become& become, const Ask& ask) {
    std::array<int, 2> answer{};
    EXPECT_EQ(pipe2(answer.data(), O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
      const std::string text = become() ? ask(socket_) : kImpossible;
      const bool is_told = write(answer[1], text.data(), text.size()) >= 0;
      _exit(is_told ? 0 : 1);
    }
    close(answer[1]);
    while (waitpid(child, nullptr, WNOHANG) == 0)
      service_->Poll(5, -1);
    std::array<char, 512> text{};
    const ssize_t got = read(answer[0], text.data(), text.size());
    close(answer[0]);
    return std::string(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  }

  template <typename Become>
  std::string AnswerToCommandThat(const Become& become) {
    return AnswerToOneThat(become, AskAsCommand);
  }

  template <typename Become>
  void ExpectRefusal(const Become& become) {
    const std::string answer = AnswerToCommandThat(become);
    if (answer == kImpossible)
      GTEST_SKIP() << "this machine does not allow it";
    EXPECT_NE(
        answer.find("root's rights where the service runs (CAP_SYS_PTRACE, in its user "
                    "and PID name space); run it there, or set HEAPPROFD_DIRECTORY"),
        std::string::npos)
        << answer;
  }

  std::string place_;
  std::string socket_;
  std::unique_ptr<RuntimeDirectory> directory_;
  std::unique_ptr<Service> service_;
};

TEST_F(RootsServiceTest, OneWithRootsRightsIsServed) {
  Open();
  EXPECT_EQ(AnswerToCommandThat([] { return true; }), kServed);
}

TEST_F(RootsServiceTest, OneThatMayTraceIsServed) {
  if (!HasCapability(CAP_SYS_PTRACE))
    GTEST_SKIP() << "this root may not";
  Open();
  EXPECT_EQ(
      AnswerToCommandThat([] { return LoseCapabilities(CapabilityBit(CAP_SYS_PTRACE)); }),
      kServed);
}

TEST_F(RootsServiceTest, AnOrdinaryUsersCommandIsToldWhatToDo) {
  Open();
  EXPECT_EQ(AnswerToCommandThat([] { return BecomeOrdinary(kAlice); }),
            "cannot serve the command: this service records for root alone; run "
            "heap_profile as root, or without HEAPPROFD_DIRECTORY, so that a service of "
            "your own records your programs");
}

TEST_F(RootsServiceTest, OneWithoutCapabilitiesIsRefused) {
  Open();
  ExpectRefusal([] { return LoseCapabilities(0); });
}

TEST_F(RootsServiceTest, OneWithThoseOfAContainerIsRefused) {
  Open();
  ExpectRefusal([] {
    return LoseCapabilities(CapabilityBit(CAP_CHOWN) | CapabilityBit(CAP_DAC_OVERRIDE) |
                            CapabilityBit(CAP_SETUID) | CapabilityBit(CAP_KILL));
  });
}

TEST_F(RootsServiceTest, OneOfAUserNamespaceIsRefused) {
  Open();
  ExpectRefusal([] { return EnterUserNamespace("0 0 1"); });
}

// Its map looks like that of the first one.
TEST_F(RootsServiceTest, OneOfAUserNamespaceWithAllIdsIsRefused) {
  Open();
  ExpectRefusal([] { return EnterUserNamespace("0 0 4294967295"); });
}

TEST_F(RootsServiceTest, OneOfAPidNamespaceIsRefused) {
  Open();
  ExpectRefusal([] { return EnterPidNamespace(); });
}

TEST_F(RootsServiceTest, OneThatHasAllThatTheServiceHasIsServed) {
  const pid_t child = fork();  // a service without capabilities, of a container
  if (child == 0) {
    std::string answer = kImpossible;
    if (LoseCapabilities(0)) {
      Open();
      answer = AnswerToCommandThat([] { return true; });
    }
    _exit(answer == kServed ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(RootsServiceTest, ProgramsOfAllAreAnswered) {
  Open();
  EXPECT_EQ(AnswerToOneThat([] { return BecomeOrdinary(kAlice); }, AskAsProgram),
            kServed);
  EXPECT_EQ(AnswerToOneThat([] { return LoseCapabilities(0); }, AskAsProgram), kServed);
}

TEST_F(RootsServiceTest, SilentOnesAndHalfWordsHoldNobodyUp) {
  Open();
  ASSERT_EQ(seteuid(kMallory), 0);
  std::vector<ScopedFd> silent;
  for (int i = 0; i < 300; ++i)
    silent.push_back(ConnectTo(socket_));
  for (int i = 0; i < 100; ++i)
    silent.push_back(Say(socket_, char{'h'}));
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(AnswerToCommandThat([] { return true; }), kServed);
  EXPECT_EQ(AnswerToOneThat([] { return BecomeOrdinary(kAlice); }, AskAsProgram),
            kServed);
}

// Counted in turns of the service, so that it holds on a busy machine.
TEST_F(RootsServiceTest, OneUsersCrowdTakesNobodyElsesTurn) {
  Open();
  std::vector<ScopedFd> crowd;
  const auto come = [&](uid_t user, int count) {
    ASSERT_EQ(seteuid(user), 0);
    for (int i = 0; i < count; ++i)
      crowd.push_back(Say(socket_, HelloOfStart()));
    ASSERT_EQ(seteuid(0), 0);
  };
  come(kMallory, 200);
  come(kAlice, 1);
  for (int turn = 0; turn < 2; ++turn)
    service_->Poll(0, -1);
  Welcome welcome{};
  ASSERT_EQ(recv(crowd.back().get(), &welcome, sizeof(welcome), MSG_DONTWAIT),
            static_cast<ssize_t>(sizeof(welcome)));
  EXPECT_EQ(welcome.status, WelcomeStatus::kDecline);
  ASSERT_EQ(recv(crowd[199].get(), &welcome, sizeof(welcome), MSG_DONTWAIT),
            static_cast<ssize_t>(sizeof(welcome)));
  EXPECT_EQ(welcome.status, WelcomeStatus::kWait);
}

}  // namespace
}  // namespace heapprofd
