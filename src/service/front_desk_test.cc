// The front desk between programs, commands and engines that do as the test says.
#include "service/front_desk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/clock.h"
#include "base/files/own_rights.h"
#include "sandbox/sandbox.h"
#include "wire/control.h"
#include "wire/handshake.h"
#include "wire/service_place.h"

namespace heapprofd {
namespace {

constexpr uid_t kAlice = 61001;
constexpr uid_t kMallory = 61002;

// What an engine does with a program: 'k' keeps it and answers with its own user's id,
// 'p' passes it on, 's' is silent about it. 'd' reads nothing after its first visitor,
// 'g' talks nonsense, 'a' asks without an end and reads nothing. Whom it has missed it
// tells its first visitor.
using Manners = std::map<uid_t, char>;

void Answer(int connection, const std::string& text) {
  send(connection, text.data(), text.size(), MSG_NOSIGNAL);
}

int Engine(Link link, const Manners& manners) {
  const auto found = manners.find(geteuid());
  const char manner = found != manners.end() ? found->second : 'k';
  if (manner == 'g') {
    send(link.fd(), "nonsense", 8, MSG_NOSIGNAL);
    pause();
  }
  while (manner == 'a') {
    pollfd writable{.fd = link.fd(), .events = POLLOUT, .revents = 0};
    poll(&writable, 1, -1);
    link.Send({.type = LinkType::kRecordings, .number = 1});
  }
  std::vector<ScopedFd> kept;
  link.Send({.type = LinkType::kRecordings, .number = 1});
  for (uint64_t visitors = 0;;) {
    pollfd readable{.fd = link.fd(), .events = POLLIN, .revents = 0};
    poll(&readable, 1, -1);
    Result<std::optional<LinkMessage>> message = link.Receive();
    if (!message.ok())
      return 0;
    if (message.value() && message.value()->type == LinkType::kMissed && !kept.empty())
      Answer(kept[0].get(), "missed " + std::to_string(message.value()->number));
    if (!message.value() || message.value()->type != LinkType::kVisitor)
      continue;
    ++visitors;
    Result<Visitor> visitor = TakeVisitor(std::move(*message.value()));
    if (!visitor.ok())
      continue;
    if (visitor.value().is_command || manner == 'k')
      Answer(visitor.value().connection.get(), std::to_string(geteuid()) + " has it");
    kept.push_back(visitor.value().connection.Release());
    while (manner == 'd')
      pause();
    if (visitor.value().is_command || manner == 's')
      continue;
    link.Send({.type = manner == 'k' ? LinkType::kAnswered : LinkType::kPassOn,
               .number = visitors});
  }
}

class FrontDeskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0)
      GTEST_SKIP() << "only root's service has a front desk";
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    std::string pattern = testing::TempDir() + "/hpdXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    place_ = pattern;
  }

  void TearDown() override {
    if (desk_ != nullptr) {
      desk_->StopAll();
      desk_->AwaitEngines(MonotonicNs());
    }
    desk_.reset();
    std::filesystem::remove_all(place_);
  }

  void Open(const Manners& manners) {
    Result<std::unique_ptr<RuntimeDirectory>> directory = RuntimeDirectory::Open(place_);
    ASSERT_TRUE(directory.ok()) << directory.status().message();
    Result<std::unique_ptr<FrontDesk>> desk = FrontDesk::Open(
        std::move(directory).value(), ScopedFd(),
        [manners](Link link) { return Engine(std::move(link), manners); });
    ASSERT_TRUE(desk.ok()) << desk.status().message();
    desk_ = std::move(desk).value();
  }

  // As `user`: the kernel remembers who it was when the connection was made.
  ScopedFd ConnectAs(uid_t user) { return ConnectAs(user, user); }

  ScopedFd ConnectAs(uid_t user, gid_t group) {
    ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = place_ + kSocketName;
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    EXPECT_EQ(setegid(group), 0);
    EXPECT_EQ(seteuid(user), 0);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
              0);
    EXPECT_EQ(seteuid(0), 0);
    EXPECT_EQ(setegid(0), 0);
    return fd;
  }

  template <typename Message>
  ScopedFd SayAs(uid_t user, const Message& message) {
    ScopedFd fd = ConnectAs(user);
    EXPECT_EQ(send(fd.get(), &message, sizeof(message), 0),
              static_cast<ssize_t>(sizeof(message)));
    return fd;
  }

  ScopedFd CommandOf(uid_t user) { return CommandOf(user, user); }

  ScopedFd CommandOf(uid_t user, gid_t group) {
    ScopedFd fd = ConnectAs(user, group);
    const ControlHeader header{
        .magic = kControlMagic, .type = ControlType::kStop, .payload_size = 0};
    EXPECT_EQ(send(fd.get(), &header, sizeof(header), 0),
              static_cast<ssize_t>(sizeof(header)));
    return fd;
  }

  ScopedFd ProgramOf(uid_t user) {
    return SayAs(user, Hello{.magic = kHandshakeMagic,
                             .version = kWireVersion,
                             .origin = ClientOrigin::kStartup,
                             .tsc = 1});
  }

  // "": the connection was closed without one.
  std::string AnswerOn(const ScopedFd& fd) {
    std::array<char, 256> text{};
    for (int i = 0; i < 6000; ++i) {
      desk_->Poll(5, -1);
      desk_->ReapEngines();
      const ssize_t got = recv(fd.get(), text.data(), text.size(), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno == ECONNRESET))
        return "";
      if (got == static_cast<ssize_t>(sizeof(Welcome))) {
        Welcome welcome{};
        memcpy(&welcome, text.data(), sizeof(welcome));
        if (welcome.status == WelcomeStatus::kWait)
          continue;
        return "declined";
      }
      if (got > 0)
        return std::string(text.data(), static_cast<size_t>(got));
    }
    return "silence";
  }

  // What has been answered by now, without a header; "": nothing.
  static std::string TextIn(const ScopedFd& fd) {
    std::array<char, 512> text{};
    const ssize_t got = recv(fd.get(), text.data(), text.size(), MSG_DONTWAIT);
    constexpr auto kHeader = static_cast<ssize_t>(sizeof(ControlHeader));
    return got > kHeader
               ? std::string(text.data() + kHeader, static_cast<size_t>(got - kHeader))
               : "";
  }

  // Each has an engine with a recording.
  void StartEngines(std::initializer_list<uid_t> users) {
    for (const uid_t user : users)
      EXPECT_EQ(AnswerOn(CommandOf(user)), std::to_string(user) + " has it");
  }

  std::string place_;
  std::unique_ptr<FrontDesk> desk_;
};

TEST_F(FrontDeskTest, CommandsReachTheEngineOfTheirUser) {
  Open({});
  StartEngines({kAlice, kMallory, 0});
  EXPECT_EQ(desk_->started(), 3u);
  StartEngines({kAlice});
  EXPECT_EQ(desk_->started(), 3u);
}

TEST_F(FrontDeskTest, ProgramsAreOfferedToRootFirstThenToTheirUser) {
  Open({{0, 'p'}});
  StartEngines({kAlice, kMallory, 0});
  EXPECT_EQ(AnswerOn(ProgramOf(kAlice)), std::to_string(kAlice) + " has it");
  EXPECT_EQ(AnswerOn(ProgramOf(61003)), "declined");
}

TEST_F(FrontDeskTest, ProgramsThatNobodyWantsAreSentAway) {
  Open({{kAlice, 'p'}});
  EXPECT_EQ(AnswerOn(ProgramOf(kAlice)), "declined");
  EXPECT_EQ(desk_->started(), 0u);
  StartEngines({kAlice});
  EXPECT_EQ(AnswerOn(ProgramOf(kAlice)), "declined");
}

TEST_F(FrontDeskTest, NobodyGetsAnotherUsersProgram) {
  Open({});
  StartEngines({kMallory});
  EXPECT_EQ(AnswerOn(ProgramOf(kAlice)), "declined");
  EXPECT_EQ(AnswerOn(ProgramOf(0)), "declined");
}

TEST_F(FrontDeskTest, AnEngineThatTalksNonsenseIsKilledAndAnotherOneIsStarted) {
  Open({{kMallory, 'g'}});
  EXPECT_EQ(AnswerOn(CommandOf(kMallory)), "");
  EXPECT_EQ(AnswerOn(CommandOf(kMallory)), "");
  EXPECT_EQ(desk_->started(), 2u);
  StartEngines({kAlice});
}

TEST_F(FrontDeskTest, AProgramThatIsNotAnsweredIsSentAway) {
  Open({{0, 's'}});
  StartEngines({0});
  EXPECT_EQ(AnswerOn(ProgramOf(kAlice)), "declined");
}

TEST_F(FrontDeskTest, AProgramGoesToItsUserWhenRootsEngineCannotFollow) {
  Open({{0, 's'}});
  StartEngines({kAlice, 0});
  std::vector<ScopedFd> crowd;
  for (int i = 0; i < 300; ++i) {  // more than an engine gets without an answer
    crowd.push_back(ProgramOf(kMallory));
    desk_->Poll(0, -1);
  }
  EXPECT_EQ(AnswerOn(ProgramOf(kAlice)), std::to_string(kAlice) + " has it");
}

TEST_F(FrontDeskTest, OneUsersCrowdTakesNobodyElsesPlace) {
  Open({{0, 's'}});
  StartEngines({0});
  std::vector<ScopedFd> crowd;
  size_t declined = 0;
  for (int i = 0; i < 700; ++i) {
    crowd.push_back(ProgramOf(kMallory));
    desk_->Poll(0, -1);
  }
  const ScopedFd alices = ProgramOf(kAlice);
  desk_->Poll(0, -1);
  desk_->Poll(0, -1);
  Welcome welcome{};
  for (const ScopedFd& fd : crowd) {
    const ssize_t got = recv(fd.get(), &welcome, sizeof(welcome), MSG_DONTWAIT);
    declined += got > 0 && welcome.status == WelcomeStatus::kDecline ? 1 : 0;
  }
  EXPECT_GT(declined, 100u);  // more than an engine has and more than wait for it
  ASSERT_GT(recv(alices.get(), &welcome, sizeof(welcome), MSG_DONTWAIT), 0);
  EXPECT_EQ(welcome.status, WelcomeStatus::kWait);
}

TEST_F(FrontDeskTest, AnEngineIsToldForWhomItHadNoRoom) {
  Open({{0, 's'}});
  const ScopedFd command = CommandOf(0);
  EXPECT_EQ(AnswerOn(command), "0 has it");
  std::vector<ScopedFd> crowd;
  for (int i = 0; i < 700; ++i) {
    crowd.push_back(ProgramOf(kMallory));
    desk_->Poll(0, -1);
  }
  EXPECT_EQ(AnswerOn(command), "missed " + std::to_string(getpid()));
}

TEST_F(FrontDeskTest, RootsOwnCrowdHasMoreRoom) {
  Open({{0, 's'}});
  StartEngines({0});
  std::vector<ScopedFd> crowd;
  for (int i = 0; i < 1000; ++i) {
    crowd.push_back(ProgramOf(0));
    desk_->Poll(0, -1);
  }
  desk_->Poll(0, -1);
  for (const ScopedFd& fd : crowd) {
    Welcome welcome{};
    const ssize_t got = recv(fd.get(), &welcome, sizeof(welcome), MSG_DONTWAIT);
    EXPECT_TRUE(got < 0 || welcome.status == WelcomeStatus::kWait);
  }
}

TEST_F(FrontDeskTest, AUserHasSomeEnginesAndIsToldWhenTheyAreAll) {
  Open({});
  for (const gid_t group : {kAlice, kAlice + 10, kAlice + 11, kAlice + 12})
    EXPECT_NE(AnswerOn(CommandOf(kAlice, group)), "");
  EXPECT_EQ(desk_->started(), 4u);
  EXPECT_NE(AnswerOn(CommandOf(kAlice, kAlice + 13)).find("end recordings"),
            std::string::npos);
  for (gid_t group = 0; group < 8; ++group)
    EXPECT_EQ(AnswerOn(CommandOf(0, group)), "0 has it");
}

TEST_F(FrontDeskTest, RootAndWhoeverIsServedAlwaysGetIn) {
  Open({});
  constexpr uid_t kFirst = 62'000;
  std::string answer;
  uid_t user = kFirst;
  for (; user < kFirst + 1000 && (answer.empty() || answer.ends_with("has it")); ++user)
    answer = AnswerOn(CommandOf(user));
  EXPECT_EQ(desk_->started(), 128u);
  EXPECT_NE(answer.find(" users have recordings already; try again when one has ended"),
            std::string::npos)
      << answer;
  EXPECT_EQ(AnswerOn(CommandOf(0)), "0 has it");
  EXPECT_EQ(AnswerOn(CommandOf(kFirst, kFirst + 5000)), "62000 has it");
}

TEST_F(FrontDeskTest, CommandsOfAnEngineThatReadsNothingAreToldSo) {
  Open({{kMallory, 'd'}});
  StartEngines({kMallory});
  std::vector<ScopedFd> commands;
  std::string answer;
  while (answer.empty() && commands.size() < 1000) {
    commands.push_back(CommandOf(kMallory));
    desk_->Poll(0, -1);
    answer = TextIn(commands.back());
  }
  EXPECT_EQ(answer,
            "cannot serve the command: too many programs and commands of this user wait "
            "already; try again");
  ASSERT_GT(commands.size(), 1u);
  const std::string late = AnswerOn(commands[commands.size() - 2]);  // it has waited
  EXPECT_TRUE(late.ends_with(
      "cannot serve the command: this user's engine does not answer; try again"))
      << late;
}

TEST_F(FrontDeskTest, AnEngineThatReadsNothingIsEnded) {
  Open({{kMallory, 'd'}});
  StartEngines({kAlice, kMallory});
  for (int i = 0; i < 5000; ++i)
    desk_->Dump("a label");
  StartEngines({kMallory});
  EXPECT_GE(desk_->started(), 3u);
}

TEST_F(FrontDeskTest, AnEngineThatAsksAndReadsNothingIsEnded) {
  Open({{kMallory, 'a'}});
  const ScopedFd command = CommandOf(kMallory);
  const uint64_t deadline_ns = MonotonicNs() + 60'000'000'000;
  const auto serve_until = [&](bool is_idle) {
    while (desk_->is_idle() != is_idle && MonotonicNs() < deadline_ns) {
      desk_->Poll(5, -1);
      desk_->ReapEngines();
    }
  };
  serve_until(false);
  EXPECT_EQ(desk_->started(), 1u);
  serve_until(true);
  EXPECT_TRUE(desk_->is_idle());
  StartEngines({kAlice});
}

// Connects and asks as many users of a user namespace of its own; gives how many have
// been told that there is no room.
int AskFromNamespace(const std::string& path, uid_t users, int ready, int go) {
  char byte = 'x';
  if (unshare(CLONE_NEWUSER) != 0 || write(ready, &byte, 1) != 1 ||
      read(go, &byte, 1) != 1 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
    return -1;
  std::vector<ScopedFd> commands;
  for (uid_t user = 1; user <= users; ++user) {
    ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const ControlHeader header{
        .magic = kControlMagic, .type = ControlType::kStop, .payload_size = 0};
    if (seteuid(user) != 0 ||
        connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        send(fd.get(), &header, sizeof(header), 0) < 0 || seteuid(0) != 0)
      return -1;
    commands.push_back(std::move(fd));
  }
  int refused = 0;
  for (const ScopedFd& fd : commands) {
    std::array<char, 512> text{};
    const ssize_t got = recv(fd.get(), text.data(), text.size(), 0);
    refused += got > 0 && std::string_view(text.data(), static_cast<size_t>(got))
                                  .find("users of other user namespaces have") !=
                              std::string_view::npos
                   ? 1
                   : 0;
  }
  return refused;
}

TEST_F(FrontDeskTest, UsersThatSomebodyHasMadeUpLeaveRoomForOthers) {
  constexpr uid_t kMadeUp = 40;
  Open({});
  std::array<int, 2> ready{};
  std::array<int, 2> go{};
  ASSERT_EQ(pipe2(ready.data(), O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(go.data(), O_CLOEXEC), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    _exit(AskFromNamespace(place_ + kSocketName, kMadeUp, ready[1], go[0]));
  char byte = 0;
  close(ready[1]);
  const bool is_possible = read(ready[0], &byte, 1) == 1;
  const std::string process = "/proc/" + std::to_string(child);
  for (const char* map : {"/uid_map", "/gid_map"})
    std::ofstream(process + map) << "0 63000 100";
  EXPECT_EQ(write(go[1], &byte, 1), 1);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0)
    desk_->Poll(5, -1);
  if (!is_possible || WEXITSTATUS(status) == 255)
    GTEST_SKIP() << "there are no user namespaces here";
  EXPECT_EQ(desk_->started(), 32u);
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(kMadeUp - 32));
  StartEngines({kAlice, 0});
}

// In a new user name space, with this map of its ids. Only who stays outside may write
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

// Says on `out` what a command is told.
[[noreturn]] void AskAndTell(const std::string& path, int out) {
  const ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const ControlHeader header{
      .magic = kControlMagic, .type = ControlType::kStop, .payload_size = 0};
  std::array<char, 512> text{};
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      send(fd.get(), &header, sizeof(header), 0) < 0)
    _exit(1);
  const ssize_t got = recv(fd.get(), text.data(), text.size(), 0);
  _exit(got > 0 && write(out, text.data(), static_cast<size_t>(got)) == got ? 0 : 1);
}

class RootsOfAllKinds : public FrontDeskTest {
 protected:
  static constexpr char kImpossible[] = "impossible";

  // What the command of a process of user 0 is told that has become something else;
  // kImpossible: it could not.
  template <typename Become>
  std::string AnswerToOneThat(const Become& become) {
    std::array<int, 2> answer{};
    EXPECT_EQ(pipe2(answer.data(), O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
      if (!become()) {
        const bool is_told = write(answer[1], kImpossible, sizeof(kImpossible) - 1) > 0;
        _exit(is_told ? 0 : 1);
      }
      AskAndTell(place_ + kSocketName, answer[1]);
    }
    close(answer[1]);
    while (waitpid(child, nullptr, WNOHANG) == 0) {
      desk_->Poll(5, -1);
      desk_->ReapEngines();
    }
    std::array<char, 512> text{};
    const ssize_t got = read(answer[0], text.data(), text.size());
    close(answer[0]);
    return std::string(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  }

  template <typename Become>
  void ExpectRefusal(const Become& become) {
    const std::string answer = AnswerToOneThat(become);
    if (answer == kImpossible)
      GTEST_SKIP() << "this machine does not allow it";
    EXPECT_NE(
        answer.find("root's rights where the service runs (CAP_SYS_PTRACE, in its user "
                    "and PID name space); run it there, or set HEAPPROFD_DIRECTORY"),
        std::string::npos)
        << answer;
    EXPECT_EQ(desk_->started(), 0u);
  }
};

TEST_F(RootsOfAllKinds, OneWithRootsRightsIsServed) {
  Open({});
  EXPECT_EQ(AnswerToOneThat([] { return true; }), "0 has it");
}

TEST_F(RootsOfAllKinds, OneThatMayTraceIsServed) {
  if (!HasCapability(CAP_SYS_PTRACE))
    GTEST_SKIP() << "this root may not";
  Open({});
  EXPECT_EQ(
      AnswerToOneThat([] { return LoseCapabilities(CapabilityBit(CAP_SYS_PTRACE)); }),
      "0 has it");
}

TEST_F(RootsOfAllKinds, OneWithoutCapabilitiesIsRefused) {
  Open({});
  ExpectRefusal([] { return LoseCapabilities(0); });
}

TEST_F(RootsOfAllKinds, OneWithThoseOfAContainerIsRefused) {
  Open({});
  ExpectRefusal([] {
    return LoseCapabilities(CapabilityBit(CAP_CHOWN) | CapabilityBit(CAP_DAC_OVERRIDE) |
                            CapabilityBit(CAP_SETUID) | CapabilityBit(CAP_KILL));
  });
}

TEST_F(RootsOfAllKinds, OneOfAUserNamespaceIsRefused) {
  Open({});
  ExpectRefusal([] { return EnterUserNamespace("0 0 1"); });
}

// Whose map looks like that of the first one.
TEST_F(RootsOfAllKinds, OneOfAUserNamespaceWithAllIdsIsRefused) {
  Open({});
  ExpectRefusal([] { return EnterUserNamespace("0 0 4294967295"); });
}

TEST_F(RootsOfAllKinds, OneOfAPidNamespaceIsRefused) {
  Open({});
  ExpectRefusal([] { return EnterPidNamespace(); });
}

TEST_F(RootsOfAllKinds, OneThatHasAllThatTheServiceHasIsServed) {
  if (geteuid() != 0)
    return;
  const pid_t child = fork();  // a service without capabilities, of a container
  if (child == 0) {
    std::string answer = "impossible";
    if (LoseCapabilities(0)) {
      Open({});
      answer = AnswerToOneThat([] { return true; });
      desk_->StopAll();
      desk_->AwaitEngines(MonotonicNs());
    }
    _exit(answer == "0 has it" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(RootsOfAllKinds, ProgramsOfAnyAreRootsToRecord) {
  Open({});
  StartEngines({0});
  std::array<int, 2> answer{};
  ASSERT_EQ(pipe2(answer.data(), O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (!LoseCapabilities(0))
      _exit(1);
    const ScopedFd fd = ProgramOf(0);
    std::array<char, 64> text{};
    ssize_t got = 0;
    do {  // it may be told to wait first
      got = recv(fd.get(), text.data(), text.size(), 0);
    } while (got == static_cast<ssize_t>(sizeof(Welcome)));
    _exit(got > 0 && std::string_view(text.data(), static_cast<size_t>(got)) == "0 has it"
              ? 0
              : 1);
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0)
    desk_->Poll(5, -1);
  EXPECT_EQ(status, 0);
}

TEST_F(FrontDeskTest, SilentOnesAndHalfWordsHoldNobodyUp) {
  Open({});
  std::vector<ScopedFd> silent;
  for (int i = 0; i < 300; ++i)
    silent.push_back(ConnectAs(kMallory));
  for (int i = 0; i < 100; ++i)
    silent.push_back(SayAs(kMallory, char{'h'}));
  StartEngines({kAlice});
}

}  // namespace
}  // namespace heapprofd
