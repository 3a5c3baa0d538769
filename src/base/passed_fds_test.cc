#include "base/passed_fds.h"

#include <gtest/gtest.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace heapprofd {
namespace {

// Sends a byte with our standard input; 0 or the error.
int SendWithFd(const ScopedFd& socket) {
  char byte = 'x';
  iovec part{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  PutFds(std::array{STDIN_FILENO}, control, &message);
  return sendmsg(socket.get(), &message, MSG_NOSIGNAL) == 1 ? 0 : errno;
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
