// Connections of peers that say nothing, nonsense, or what they should.
#include "engine/pending_clients.h"

#include <gtest/gtest.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr uint64_t kHour = 3'600'000'000'000;
constexpr uint64_t kWord = 0x1122334455667788;

class PendingClientsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "pending_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    address_.sun_family = AF_UNIX;
    strncpy(address_.sun_path, (folder_ + "/s").c_str(), sizeof(address_.sun_path) - 1);
    listener_ = ScopedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_EQ(
        bind(listener_.get(), reinterpret_cast<sockaddr*>(&address_), sizeof(address_)),
        0);
    ASSERT_EQ(listen(listener_.get(), SOMAXCONN), 0);
    chmod(folder_.c_str(), 0755);
    chmod(address_.sun_path, 0666);
  }

  void TearDown() override {
    unlink(address_.sun_path);
    rmdir(folder_.c_str());
  }

  ScopedFd Connect() const {
    ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        connect(fd.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)),
        0)
        << strerror(errno);
    return fd;
  }

  ScopedFd ConnectAndSay(uint64_t word, size_t size = sizeof(uint64_t)) const {
    ScopedFd fd = Connect();
    EXPECT_EQ(send(fd.get(), &word, size, 0), static_cast<ssize_t>(size));
    return fd;
  }

  // Accepts who waits and serves once; the words that were heard.
  std::vector<uint64_t> Turn(PendingClients& clients) {
    std::vector<uint64_t> words;
    clients.Accept(listener_.get());
    is_behind_ = clients.Serve(
        [&](PendingClients::Client&, uint64_t word) { words.push_back(word); });
    return words;
  }

  static bool IsClosed(const ScopedFd& fd) {
    char byte = 0;
    return recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
  }

  std::string folder_;
  sockaddr_un address_{};
  ScopedFd listener_;
  bool is_behind_ = false;
};

TEST_F(PendingClientsTest, SilentOnesWaitAndHoldNobodyUp) {
  PendingClients clients(
      {.all = 100, .of_user = 10, .patience_ns = kHour, .per_turn = 16});
  std::vector<ScopedFd> silent;
  for (int i = 0; i < 50; ++i)
    silent.push_back(Connect());
  const ScopedFd speaks = ConnectAndSay(kWord);
  EXPECT_EQ(Turn(clients), std::vector<uint64_t>({kWord}));
  EXPECT_TRUE(IsClosed(speaks));
  EXPECT_EQ(clients.size(), 50u);
  EXPECT_GT(clients.MillisecondsToDeadline(), 1000);
  send(silent[7].get(), &kWord, sizeof(kWord), 0);
  EXPECT_EQ(Turn(clients), std::vector<uint64_t>({kWord}));
  EXPECT_EQ(clients.size(), 49u);
}

TEST_F(PendingClientsTest, HalfAWordAndAClosedConnectionAreTheEndOfIt) {
  PendingClients clients(
      {.all = 100, .of_user = 10, .patience_ns = kHour, .per_turn = 16});
  const ScopedFd half = ConnectAndSay(kWord, 3);
  Connect().reset();
  EXPECT_TRUE(Turn(clients).empty());
  EXPECT_TRUE(clients.empty());
  EXPECT_TRUE(IsClosed(half));
  EXPECT_EQ(clients.MillisecondsToDeadline(), INT_MAX);
}

TEST_F(PendingClientsTest, PatienceEnds) {
  PendingClients clients({.all = 100, .of_user = 10, .patience_ns = 0, .per_turn = 16});
  const ScopedFd silent = Connect();
  Turn(clients);
  Turn(clients);
  EXPECT_TRUE(IsClosed(silent));
  EXPECT_TRUE(clients.empty());
}

TEST_F(PendingClientsTest, ACrowdIsServedInTurns) {
  PendingClients clients(
      {.all = 100, .of_user = 10, .patience_ns = kHour, .per_turn = 16});
  std::vector<ScopedFd> crowd;
  for (uint64_t i = 0; i < 20; ++i)
    crowd.push_back(ConnectAndSay(i));
  EXPECT_EQ(Turn(clients).size(), 16u);
  EXPECT_TRUE(is_behind_);
  EXPECT_EQ(Turn(clients), std::vector<uint64_t>({16, 17, 18, 19}));
  EXPECT_FALSE(is_behind_);
}

TEST_F(PendingClientsTest, WhoHasToWaitForAnotherTurnIsToldOnce) {
  PendingClients clients(
      {.all = 100, .of_user = 10, .patience_ns = kHour, .per_turn = 1});
  std::vector<ScopedFd> crowd;
  for (int i = 0; i < 3; ++i)
    crowd.push_back(ConnectAndSay(kHandshakeMagic));
  const ScopedFd another = ConnectAndSay(kWord);  // speaks no handshake
  Turn(clients);
  Turn(clients);
  Welcome welcome{};
  for (int i = 0; i < 3; ++i) {
    const ssize_t got = recv(crowd[static_cast<size_t>(i)].get(), &welcome,
                             sizeof(welcome), MSG_DONTWAIT);
    EXPECT_EQ(got == static_cast<ssize_t>(sizeof(welcome)) &&
                  welcome.status == WelcomeStatus::kWait,
              i > 0);
  }
  char byte = 0;
  EXPECT_EQ(recv(crowd[2].get(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(recv(another.get(), &byte, 1, MSG_DONTWAIT), -1);
}

TEST_F(PendingClientsTest, ACrowdIsTakenInWithinATurnsTime) {
  PendingClients clients(
      {.all = 100, .of_user = 100, .patience_ns = kHour, .per_turn = 16, .turn_ns = 0});
  std::vector<ScopedFd> crowd;
  for (size_t i = 0; i < 3; ++i)
    crowd.push_back(Connect());
  for (size_t i = 1; i <= 3; ++i) {
    EXPECT_TRUE(clients.Accept(listener_.get()));
    EXPECT_EQ(clients.size(), i);
  }
  EXPECT_FALSE(clients.Accept(listener_.get()));
}

TEST_F(PendingClientsTest, InAChildTheConnectionsAreTheParents) {
  PendingClients clients(
      {.all = 100, .of_user = 10, .patience_ns = kHour, .per_turn = 16});
  const ScopedFd silent = Connect();
  Turn(clients);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    clients.LeaveToParent();
    _exit(clients.empty() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(IsClosed(silent));
}

TEST_F(PendingClientsTest, WithoutRoomTheOldestSilentOneGoes) {
  PendingClients clients({.all = 3, .of_user = 0, .patience_ns = kHour, .per_turn = 16});
  std::vector<ScopedFd> silent;
  for (int i = 0; i < 3; ++i)
    silent.push_back(Connect());
  Turn(clients);
  const ScopedFd speaks = ConnectAndSay(kWord);
  EXPECT_EQ(Turn(clients), std::vector<uint64_t>({kWord}));
  EXPECT_TRUE(IsClosed(silent[0]));
  EXPECT_FALSE(IsClosed(silent[1]));
  EXPECT_FALSE(IsClosed(silent[2]));
}

TEST_F(PendingClientsTest, WhoHasSpokenIsNotTheOneToGo) {
  PendingClients clients({.all = 2, .of_user = 0, .patience_ns = kHour, .per_turn = 16});
  const ScopedFd first = ConnectAndSay(1);
  const ScopedFd second = ConnectAndSay(2);
  const ScopedFd third = ConnectAndSay(3);
  EXPECT_EQ(Turn(clients), std::vector<uint64_t>({1, 2}));
}

TEST_F(PendingClientsTest, WhoHasNoRoomIsNotedOnce) {
  PendingClients clients({.all = 2, .of_user = 0, .patience_ns = kHour, .per_turn = 16});
  std::vector<ScopedFd> crowd;
  for (uint64_t i = 0; i < 5; ++i)
    crowd.push_back(ConnectAndSay(i));
  EXPECT_EQ(Turn(clients), std::vector<uint64_t>({0, 1}));
  EXPECT_EQ(clients.TakeTurnedAway(), std::vector<pid_t>({getpid()}));
  EXPECT_TRUE(clients.TakeTurnedAway().empty());
}

TEST_F(PendingClientsTest, UsersTakeTurnsAndOurOwnIsTheFirst) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can be several users";
  PendingClients clients(
      {.all = 100, .of_user = 100, .patience_ns = kHour, .per_turn = 4});
  std::vector<ScopedFd> crowd;
  const auto come = [&](uid_t user, uint64_t from, uint64_t to) {
    ASSERT_EQ(seteuid(user), 0);
    for (uint64_t word = from; word <= to; ++word)
      crowd.push_back(ConnectAndSay(word));
    ASSERT_EQ(seteuid(0), 0);
  };
  come(61001, 10, 15);
  come(61002, 20, 21);
  come(0, 1, 2);
  EXPECT_EQ(Turn(clients), std::vector<uint64_t>({1, 10, 20, 2}));
  EXPECT_EQ(Turn(clients), std::vector<uint64_t>({11, 21, 12, 13}));
  EXPECT_EQ(Turn(clients), std::vector<uint64_t>({14, 15}));
}

TEST_F(PendingClientsTest, AnotherUserHasHisShareAndNoMore) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can be two users";
  PendingClients clients(
      {.all = 100, .of_user = 4, .patience_ns = kHour, .per_turn = 16});
  const ScopedFd own = Connect();
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    close(ends[1]);
    if (setresuid(65534, 65534, 65534) != 0)
      _exit(1);
    std::vector<ScopedFd> silent;
    for (int i = 0; i < 20; ++i)
      silent.push_back(Connect());
    char byte = 0;
    const bool is_over = read(ends[0], &byte, 1) == 0;
    _exit(is_over ? 0 : 1);
  }
  close(ends[0]);

  while (clients.size() < 5)
    Turn(clients);
  Turn(clients);
  EXPECT_LE(clients.size(), 5u);
  EXPECT_FALSE(IsClosed(own));
  close(ends[1]);
  EXPECT_EQ(waitpid(other, nullptr, 0), other);
  Turn(clients);
  EXPECT_EQ(clients.size(), 1u);
}

}  // namespace
}  // namespace heapprofd
