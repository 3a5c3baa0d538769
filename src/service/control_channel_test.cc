#include "service/control_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>

#include "base/test_limits.h"

namespace heapprofd {
namespace {

class ControlChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    left_ = std::make_unique<ControlChannel>(ScopedFd(fds[0]));
    right_ = std::make_unique<ControlChannel>(ScopedFd(fds[1]));
  }

  std::unique_ptr<ControlChannel> left_;
  std::unique_ptr<ControlChannel> right_;
};

TEST_F(ControlChannelTest, MessagesArriveWholeAndInOrder) {
  const std::string large(100'000, 'x');
  ASSERT_TRUE(left_->Send(ControlType::kMark, "one").ok());
  ASSERT_TRUE(left_->Send(ControlType::kStart, large).ok());
  Result<ControlMessage> first = right_->Wait(1000);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first.value().type, ControlType::kMark);
  EXPECT_EQ(first.value().payload, "one");
  Result<ControlMessage> second = right_->Wait(1000);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value().payload, large);
}

TEST_F(ControlChannelTest, DescriptorsTravelWithTheirMessage) {
  const ScopedFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(left_->Send(ControlType::kStart, "x", {file.get(), file.get()}).ok());
  Result<ControlMessage> message = right_->Wait(1000);
  ASSERT_TRUE(message.ok());
  ASSERT_EQ(message.value().fds.size(), 2u);

  struct stat status {};

  ASSERT_EQ(fstat(message.value().fds[1].get(), &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST_F(ControlChannelTest, APieceOfAMessageIsNoMessage) {
  const ControlHeader header{
      .magic = kControlMagic, .type = ControlType::kMark, .payload_size = 4};
  ASSERT_EQ(send(left_->fd(), &header, sizeof(header), 0),
            static_cast<ssize_t>(sizeof(header)));
  ASSERT_EQ(send(left_->fd(), "ab", 2, 0), 2);
  const Result<std::optional<ControlMessage>> nothing = right_->Receive();
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing.value());
  ASSERT_EQ(send(left_->fd(), "cd", 2, 0), 2);
  const Result<ControlMessage> message = right_->Wait(1000);
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message.value().payload, "abcd");
}

TEST_F(ControlChannelTest, NonsenseAndHugeMessagesAreErrors) {
  ControlHeader header{
      .magic = kControlMagic, .type = ControlType::kMark, .payload_size = UINT32_MAX};
  send(left_->fd(), &header, sizeof(header), 0);
  EXPECT_EQ(right_->Receive().status().message(), "cannot understand a control message");
}

TEST_F(ControlChannelTest, TheOtherSidesEndIsNoticed) {
  left_.reset();
  EXPECT_EQ(right_->Receive().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(right_->Send(ControlType::kStop, "").message(),
            "cannot send a control message: Broken pipe");
}

TEST(ControlChannelConnectTest, NobodyThereIsNotFound) {
  const Result<ControlChannel> channel = ControlChannel::Connect("/nonexistent/socket");
  ASSERT_FALSE(channel.ok());
  EXPECT_EQ(channel.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(channel.status().message(),
            "cannot connect to /nonexistent/socket: No such file or directory");
}

TEST(ControlChannelConnectTest, WhatIsWrongIsTold) {
  const std::string path = "/" + std::string(200, 'x');
  EXPECT_EQ(ControlChannel::Connect(path).status().message(),
            "cannot connect to " + path +
                ": the path is too long; name a shorter one by HEAPPROFD_DIRECTORY");
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP() << "sanitizers need descriptors of their own";
  const ScopedLimit none(RLIMIT_NOFILE, 0);
  EXPECT_EQ(ControlChannel::Connect("/x").status().message(),
            "cannot connect to /x: Too many open files; raise ulimit -n");
}

}  // namespace
}  // namespace heapprofd
