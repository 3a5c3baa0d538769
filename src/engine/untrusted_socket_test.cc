// Sockets whose queue holds what takes long to close. A TCP socket that lingers needs no
// privilege for that; it waits where a signal can end it, which a file of a FUSE does not
// (tests/attack).
#include "engine/untrusted_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string>

#include "base/clock.h"
#include "base/files/passed_fds.h"

namespace heapprofd {
namespace {

constexpr int kLingerSeconds = 60;
constexpr uint64_t kSoonNs = 20'000'000'000;  // far below, and not soon to anybody else

// 0 or an error.
int SendFd(const ScopedFd& socket, int fd) {
  return SendWithFds(socket.get(), "x", {fd}) ? 0 : errno;
}

class UntrustedSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours_ = UntrustedSocket(ScopedFd(ends[0]));
    theirs_ = ScopedFd(ends[1]);
    AcceptFds(ours_.get());  // as an older kernel does
  }

  UntrustedSocket ours_;
  ScopedFd theirs_;
};

// A connection with something to say to somebody who does not listen: closing it takes
// kLingerSeconds.
struct Lingering {
  ScopedFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  ScopedFd silent{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

  Lingering() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* place = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(silent.get(), place, size), 0);
    EXPECT_EQ(listen(silent.get(), 1), 0);
    EXPECT_EQ(getsockname(silent.get(), place, &size), 0);
    EXPECT_EQ(connect(socket.get(), place, size), 0);
    const linger patience{.l_onoff = 1, .l_linger = kLingerSeconds};
    EXPECT_EQ(
        setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &patience, sizeof(patience)), 0);
    const std::string text(1 << 20, 'x');
    while (send(socket.get(), text.data(), text.size(), MSG_DONTWAIT) > 0) {
    }
  }
};

TEST_F(UntrustedSocketTest, NobodyWaitsForWhatLiesInIt) {
  for (const size_t before : {size_t{0}, size_t{1}, size_t{100'000}}) {
    SetUp();
    Lingering lingering;
    const std::string text(before, 'x');
    ASSERT_EQ(send(theirs_.get(), text.data(), before, 0), static_cast<ssize_t>(before));
    ASSERT_EQ(SendFd(theirs_, lingering.socket.get()), 0);
    lingering.socket.reset();
    const uint64_t begin = MonotonicNs();
    ours_ = UntrustedSocket();
    EXPECT_LT(MonotonicNs() - begin, kSoonNs) << before;
  }
}

TEST_F(UntrustedSocketTest, WhatLiesInItIsClosedInTheEnd) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const ScopedFd sees_the_end(ends[0]);
  ScopedFd passed(ends[1]);
  ASSERT_EQ(SendFd(theirs_, passed.get()), 0);
  passed.reset();
  ours_ = UntrustedSocket();
  pollfd over{.fd = sees_the_end.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&over, 1, 60'000), 1);
}

TEST_F(UntrustedSocketTest, TheOtherSideReadsWhatWasSaidAndThenTheEnd) {
  ASSERT_EQ(send(theirs_.get(), "unread", 6, 0), 6);
  ASSERT_EQ(send(ours_.get(), "no", 2, 0), 2);
  ours_ = UntrustedSocket();
  std::array<char, 8> text{};
  EXPECT_EQ(recv(theirs_.get(), text.data(), text.size(), 0), 2);
  EXPECT_EQ(recv(theirs_.get(), text.data(), text.size(), 0), 0);
}

TEST_F(UntrustedSocketTest, OneThatIsReleasedLivesOn) {
  const ScopedFd other(fcntl(ours_.get(), F_DUPFD_CLOEXEC, 0));
  ours_.Release().reset();
  EXPECT_EQ(send(other.get(), "x", 1, MSG_NOSIGNAL), 1);
}

TEST_F(UntrustedSocketTest, DescriptorsAreRefusedWhereTheyCanBe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  if (!RefuseFds(ends[0]))
    GTEST_SKIP() << "this kernel cannot refuse descriptors";
  AcceptFds(ends[0]);
  const UntrustedSocket ours{ScopedFd(ends[0])};
  const ScopedFd theirs(ends[1]);
  EXPECT_EQ(SendFd(theirs, STDIN_FILENO), EPERM);
}

}  // namespace
}  // namespace heapprofd
