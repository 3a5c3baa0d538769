// Users of both ends of connections over the loopback.
#include "web/peer_user.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace heapprofd {
namespace {

class PeerUserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    listener_ = ScopedFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* const address = reinterpret_cast<sockaddr*>(&address_);
    ASSERT_EQ(bind(listener_.get(), address, sizeof(address_)), 0);
    ASSERT_EQ(listen(listener_.get(), 4), 0);
    ASSERT_EQ(getsockname(listener_.get(), address, &size), 0);
    client_ = ScopedFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(client_.get(), address, sizeof(address_)), 0);
    accepted_ = ScopedFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(accepted_.valid());
    if (!users_.Of(accepted_.get()))
      GTEST_SKIP() << "this kernel does not tell (sock_diag)";
  }

  sockaddr_in address_{};
  ScopedFd listener_, client_, accepted_;
  PeerUsers users_;
};

TEST_F(PeerUserTest, TheUserOfTheOtherEndIsTold) {
  const Peer peer = *users_.Of(accepted_.get());
  EXPECT_EQ(peer.user, geteuid());
  EXPECT_FALSE(peer.has_left);
}

TEST_F(PeerUserTest, WhoHasClosedHasLeft) {
  client_.reset();
  EXPECT_TRUE(users_.Of(accepted_.get())->has_left);
}

TEST_F(PeerUserTest, OfWhatIsNoConnectionNothingIsTold) {
  EXPECT_FALSE(users_.Of(listener_.get()).has_value());
  EXPECT_FALSE(users_.Of(-1).has_value());
}

}  // namespace
}  // namespace heapprofd
