// Peers at the socket, played by this very process.
#include "engine/session/session_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "attach/thread/test_process.h"
#include "base/clock.h"
#include "base/test_child.h"
#include "base/test_limits.h"
#include "wire/control.h"

namespace heapprofd {
namespace {

class SessionSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    auto created = SessionSocket::Create(
        {.hello = [this](const Hello&, const PendingClients::Client&) { ++hellos_; },
         .exec_notice = [this](const ExecNotice&, pid_t sender) { sender_ = sender; }});
    ASSERT_TRUE(created.ok()) << created.status().message();
    socket_ = std::move(created).value();
  }

  ScopedFd Connect() const {
    ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, socket_->path().c_str(), sizeof(address.sun_path) - 1);
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
        0)
      fd.reset();
    return fd;
  }

  template <typename Message>
  ScopedFd Say(const Message& message, size_t size = sizeof(Message)) const {
    ScopedFd fd = Connect();
    EXPECT_EQ(send(fd.get(), &message, size, 0), static_cast<ssize_t>(size));
    return fd;
  }

  // Serves until nobody is left who has spoken.
  void Serve() {
    while (socket_->Serve()) {
    }
    while (socket_->Serve()) {
    }
  }

  int hellos_ = 0;
  pid_t sender_ = 0;
  std::unique_ptr<SessionSocket> socket_;
};

TEST_F(SessionSocketTest, WithoutDescriptorsOrAPlaceThereIsNone) {
  const auto error = [] {
    const auto created = SessionSocket::Create({});
    return created.ok() ? "" : created.status().message();
  };
  const std::optional<std::string> said = SaidInChild(MakeTemporaryPlacesReadOnly, error);
  if (said) {
    EXPECT_TRUE(
        said->starts_with("cannot create a directory for the session's socket in "))
        << *said;
  }
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP() << "sanitizers need descriptors of their own";
  const ScopedLimit none(RLIMIT_NOFILE, 0);
  EXPECT_EQ(error(),
            "cannot create the session's socket: Too many open files; raise ulimit -n");
}

TEST_F(SessionSocketTest, WhatIsSaidIsHeardWithWhoSaysIt) {
  Hello hello{};
  hello.magic = kHandshakeMagic;
  hello.version = kWireVersion;
  ExecNotice notice{};
  notice.magic = kExecNoticeMagic;
  notice.version = kWireVersion;
  const ScopedFd first = Say(hello);
  const ScopedFd second = Say(notice);
  Serve();
  EXPECT_EQ(hellos_, 1);
  EXPECT_EQ(sender_, getpid());
}

TEST_F(SessionSocketTest, WhoWaitsForHisTurnIsServedWithoutAPause) {
  Hello hello{};
  hello.magic = kHandshakeMagic;
  std::vector<ScopedFd> crowd;
  for (int i = 0; i < 40; ++i)  // more than are heard in a turn
    crowd.push_back(Say(hello));
  EXPECT_TRUE(socket_->Serve());
  EXPECT_EQ(socket_->MillisecondsToNext(), 0);
  EXPECT_LT(hellos_, 40);
  Serve();
  EXPECT_EQ(hellos_, 40);
  EXPECT_GT(socket_->MillisecondsToNext(), 0);
}

TEST_F(SessionSocketTest, WhatIsNotWholeOrOfAnotherKindIsNotHeard) {
  Hello hello{};
  hello.magic = kHandshakeMagic;
  const ScopedFd cut = Say(hello, sizeof(hello) - 1);
  ExecNotice notice{};
  notice.magic = kExecNoticeMagic;
  notice.version = kWireVersion + 1;
  const ScopedFd later = Say(notice);
  const ScopedFd nonsense = Say(uint64_t{0x1234});
  Serve();
  EXPECT_EQ(hellos_, 0);
  EXPECT_EQ(sender_, 0);
}

TEST_F(SessionSocketTest, ControlGoesToItsHandler) {
  bool was_given = false;
  socket_->set_control_handler(
      [&was_given](const ScopedFd& connection) { was_given = connection.valid(); });
  const ScopedFd fd = Say(uint64_t{kControlMagic});
  Serve();
  EXPECT_TRUE(was_given);
}

TEST_F(SessionSocketTest, WhatWasSaidBeforeTheEndCounts) {
  Hello hello{};
  hello.magic = kHandshakeMagic;
  const ScopedFd before = Say(hello);
  socket_->Close();
  EXPECT_EQ(hellos_, 1);
  EXPECT_FALSE(Connect().valid());
  socket_->Close();
  EXPECT_EQ(hellos_, 1);
}

TEST_F(SessionSocketTest, WhatOneThatWasKilledHasLeftTheNextRemoves) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const ScopedFd from_child(fds[0]);
  ScopedFd to_parent(fds[1]);
  std::filesystem::path left;
  {
    const TestProcess killed([&] {
      const auto created = SessionSocket::Create({});
      const std::string path = created.ok() ? created.value()->path() : "";
      static_cast<void>(!write(to_parent.get(), path.data(), path.size()));
      PauseForEver();
    });
    to_parent.reset();
    std::array<char, 128> path{};
    ASSERT_GT(read(from_child.get(), path.data(), path.size() - 1), 0);
    left = path.data();
    const auto meanwhile = SessionSocket::Create({});
    ASSERT_TRUE(std::filesystem::exists(left));
  }
  ASSERT_TRUE(std::filesystem::exists(left));
  const auto next = SessionSocket::Create({});
  ASSERT_TRUE(next.ok());
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_FALSE(std::filesystem::exists(left.parent_path()));
  EXPECT_TRUE(std::filesystem::exists(socket_->path()));
  EXPECT_TRUE(Connect().valid());
}

TEST_F(SessionSocketTest, NothingIsLeftBehind) {
  const std::filesystem::path path = socket_->path();

  struct stat status {};

  ASSERT_EQ(stat(path.parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0066,
            0u);  // nobody else can see or change what is in it
  socket_.reset();
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
}

}  // namespace
}  // namespace heapprofd
