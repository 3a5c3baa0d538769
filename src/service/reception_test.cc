// The socket of a service, with the test as everybody who comes.
#include "service/reception.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/files/passed_fds.h"
#include "base/test_limits.h"
#include "wire/control.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

class ReceptionTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/hpdXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    place_ = pattern;
    Open();
  }

  void TearDown() override {
    reception_.reset();
    std::filesystem::remove_all(place_);
  }

  void Open() {
    Result<std::unique_ptr<Reception>> reception =
        Reception::Open(place_ + "/socket", ScopedFd());
    ASSERT_TRUE(reception.ok()) << reception.status().message();
    reception_ = std::move(reception).value();
  }

  ScopedFd Connect() const {
    ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = place_ + "/socket";
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
              0);
    return fd;
  }

  ScopedFd ConnectAndSay(uint64_t word) const {
    ScopedFd fd = Connect();
    EXPECT_EQ(send(fd.get(), &word, sizeof(word), 0), static_cast<ssize_t>(sizeof(word)));
    return fd;
  }

  std::vector<Visitor> Turn() {
    std::vector<Visitor> visitors;
    reception_->Serve([&](Visitor visitor) { visitors.push_back(std::move(visitor)); });
    return visitors;
  }

  static bool IsClosed(const ScopedFd& fd) {
    char byte = 0;
    return recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  std::string place_;
  std::unique_ptr<Reception> reception_;
};

TEST_F(ReceptionTest, ProgramsAndCommandsAreToldApartAndKnown) {
  const ScopedFd program = ConnectAndSay(kHandshakeMagic);
  const ScopedFd command = ConnectAndSay(kControlMagic);
  const std::vector<Visitor> visitors = Turn();
  ASSERT_EQ(visitors.size(), 2u);
  EXPECT_FALSE(visitors[0].is_command);
  EXPECT_TRUE(visitors[1].is_command);
  for (const Visitor& visitor : visitors) {
    EXPECT_EQ(visitor.pid, getpid());
    EXPECT_EQ(visitor.user, geteuid());
  }
  uint64_t word = 0;
  EXPECT_EQ(recv(visitors[0].connection.get(), &word, sizeof(word), MSG_DONTWAIT), 8);
  EXPECT_EQ(word, kHandshakeMagic);  // it is left to be read
  EXPECT_TRUE(reception_->is_empty());
}

TEST_F(ReceptionTest, SomethingThatIsNoConnectionIsNoVisitor) {
  EXPECT_TRUE(Identify(UntrustedSocket(ScopedFd(dup(STDIN_FILENO))))
                  .status()
                  .message()
                  .starts_with("cannot tell who has connected: "));
}

TEST_F(ReceptionTest, WhoeverSaysSomethingElseIsSentAway) {
  const ScopedFd stranger = ConnectAndSay(42);
  EXPECT_TRUE(Turn().empty());
  EXPECT_TRUE(IsClosed(stranger));
}

TEST_F(ReceptionTest, SilentOnesAreWaitedForForAWhile) {
  EXPECT_EQ(reception_->MillisecondsToNext(), -1);
  const ScopedFd silent = Connect();
  EXPECT_TRUE(Turn().empty());
  EXPECT_FALSE(reception_->is_empty());
  EXPECT_GT(reception_->MillisecondsToNext(), 0);
  EXPECT_LE(reception_->MillisecondsToNext(), 4001);
}

TEST_F(ReceptionTest, ACrowdIsServedInTurnsWithoutAWait) {
  std::vector<ScopedFd> crowd;
  for (int i = 0; i < 65; ++i)
    crowd.push_back(ConnectAndSay(kHandshakeMagic));
  EXPECT_EQ(Turn().size(), 64u);
  EXPECT_EQ(reception_->MillisecondsToNext(), 0);
  EXPECT_EQ(Turn().size(), 1u);
  EXPECT_EQ(reception_->MillisecondsToNext(), -1);
}

TEST_F(ReceptionTest, NobodyBringsDescriptors) {
  const ScopedFd stranger = Connect();
  if (!RefuseFds(stranger.get()))
    GTEST_SKIP() << "this kernel cannot refuse descriptors";
  const std::string word(reinterpret_cast<const char*>(&kControlMagic),
                         sizeof(kControlMagic));
  EXPECT_FALSE(SendWithFds(stranger.get(), word, {STDIN_FILENO}));
  EXPECT_EQ(errno, EPERM);
  EXPECT_TRUE(Turn().empty());
  EXPECT_FALSE(SendWithFds(stranger.get(), word, {STDIN_FILENO}));
  EXPECT_EQ(errno, EPERM);
}

TEST_F(ReceptionTest, TheSocketIsForWhoeverMayComeAndGoesWithTheService) {
  struct stat status {};

  ASSERT_EQ(stat((place_ + "/socket").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, geteuid() == 0 ? 0666u : 0600u);
  reception_.reset();
  EXPECT_NE(stat((place_ + "/socket").c_str(), &status), 0);
}

TEST_F(ReceptionTest, AChildRemovesNeitherTheSocketNorAConnection) {
  const ScopedFd silent = Connect();
  Turn();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    reception_->LeaveToParent();
    reception_.reset();
    _exit(0);
  }
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(std::filesystem::exists(place_ + "/socket"));
  EXPECT_FALSE(IsClosed(silent));
}

TEST_F(ReceptionTest, APathThatIsTooLongIsNamed) {
  const auto reception =
      Reception::Open(place_ + "/" + std::string(200, 'x'), ScopedFd());
  ASSERT_FALSE(reception.ok());
  EXPECT_NE(reception.status().message().find(
                ": the path is too long; name a shorter one with --directory"),
            std::string::npos);
}

TEST_F(ReceptionTest, WhyNobodyCanBeReceivedIsTold) {
  const std::string path = place_ + "/none/socket";
  EXPECT_EQ(Reception::Open(path, ScopedFd()).status().message(),
            "cannot listen on " + path + ": No such file or directory");
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP() << "sanitizers need descriptors of their own";
  const ScopedLimit none(RLIMIT_NOFILE, 0);
  EXPECT_EQ(Reception::Open(path, ScopedFd()).status().message(),
            "cannot listen on " + path + ": Too many open files; raise ulimit -n");
}

}  // namespace
}  // namespace heapprofd
