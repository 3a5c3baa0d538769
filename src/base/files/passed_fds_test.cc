#include "base/files/passed_fds.h"

#include <gtest/gtest.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace heapprofd {
namespace {

// Sends a byte with our standard input; 0 or the error.
int SendWithFd(const ScopedFd& socket) {
  return SendWithFds(socket.get(), "x", {STDIN_FILENO}) ? 0 : errno;
}

TEST(PassedFdsTest, DescriptorsComeWithTheirPacketAndTheEndIsTold) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  ScopedFd ours(ends[0]);
  const ScopedFd theirs(ends[1]);
  EXPECT_FALSE(ReceiveWithFds(theirs.get(), 8).is_end);  // there is nothing yet
  ASSERT_EQ(SendWithFds(ours.get(), "two", {STDIN_FILENO, STDERR_FILENO}), 3u);
  ASSERT_EQ(SendWithFds(ours.get(), "longer", {}), 6u);
  EXPECT_FALSE(
      SendWithFds(ours.get(), "x", std::vector<int>(kMaxPassedFds + 1, STDIN_FILENO)));
  const Packet two = ReceiveWithFds(theirs.get(), 8);
  EXPECT_EQ(two.bytes, "two");
  EXPECT_EQ(two.fds.size(), 2u);
  EXPECT_EQ(ReceiveWithFds(theirs.get(), 4).bytes, "long");
  ours.reset();
  EXPECT_TRUE(ReceiveWithFds(theirs.get(), 8).is_end);
}

TEST(PassedFdsTest, ASocketThatRefusesDescriptorsGetsNone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const ScopedFd ours(ends[0]);
  const ScopedFd theirs(ends[1]);
  if (!RefuseFds(ours.get()))
    GTEST_SKIP() << "this kernel cannot refuse descriptors";
  EXPECT_EQ(SendWithFd(theirs), EPERM);
  EXPECT_EQ(SendWithFd(ours), 0);
  ASSERT_TRUE(AcceptFds(ours.get()));
  EXPECT_EQ(SendWithFd(theirs), 0);
}

TEST(PassedFdsTest, WhoeverConnectsToASocketThatRefusesIsRefused) {
  const ScopedFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!RefuseFds(listener.get()))
    GTEST_SKIP() << "this kernel cannot refuse descriptors";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;  // a name of the kernel's choice
  socklen_t size = sizeof(address.sun_family);
  auto* name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener.get(), name, size), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  size = sizeof(address);
  ASSERT_EQ(getsockname(listener.get(), name, &size), 0);
  const ScopedFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), name, size), 0);
  EXPECT_EQ(SendWithFd(client), EPERM);  // nobody has accepted it yet
  const ScopedFd accepted(accept(listener.get(), nullptr, nullptr));
  EXPECT_EQ(SendWithFd(client), EPERM);
}

}  // namespace
}  // namespace heapprofd
