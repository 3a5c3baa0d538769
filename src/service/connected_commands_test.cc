#include "service/connected_commands.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

constexpr uint64_t kHourNs = 3'600'000'000'000;

class ConnectedCommandsTest : public testing::Test {
 protected:
  void SetUp() override { commands_.set_patience(kHourNs); }

  // Gives its end of the connection.
  ControlChannel AdmitOne() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    Visitor visitor;
    visitor.connection = UntrustedSocket(ScopedFd(fds[0]));
    visitor.is_command = true;
    commands_.Admit(std::move(visitor));
    return ControlChannel(ScopedFd(fds[1]));
  }

  void Serve() {
    commands_.Serve(
        [this](ConnectedCommand& command, const ControlMessage& message) {
          heard_ += std::to_string(command.serial) + message.payload + " ";
          return message.type != ControlType::kStop;
        },
        [this](size_t serial) { gone_ += std::to_string(serial) + " "; });
  }

  // The next message that has arrived there; nullopt: none, or the connection is closed.
  static std::optional<ControlMessage> On(ControlChannel& channel) {
    Result<std::optional<ControlMessage>> message = channel.Receive();
    return message.ok() ? std::move(message).value() : std::nullopt;
  }

  ConnectedCommands commands_;
  std::string heard_;
  std::string gone_;
};

TEST_F(ConnectedCommandsTest, OneThatSaysTooMuchIsHeardInSeveralTurns) {
  ControlChannel channel = AdmitOne();
  for (const char* word : {"a", "b", "c", "d", "e"})
    ASSERT_TRUE(channel.Send(ControlType::kMark, word).ok());
  EXPECT_GT(commands_.MillisecondsToNext(), 0);
  Serve();
  EXPECT_EQ(heard_, "1a 1b 1c 1d ");
  EXPECT_EQ(commands_.MillisecondsToNext(), 0);
  Serve();
  EXPECT_EQ(heard_, "1a 1b 1c 1d 1e ");
  EXPECT_GT(commands_.MillisecondsToNext(), 0);
  EXPECT_EQ(gone_, "");
}

TEST_F(ConnectedCommandsTest, OneThatIsClosedOrMeansNothingIsGone) {
  ControlChannel stays = AdmitOne();
  ControlChannel refused = AdmitOne();
  { const ControlChannel leaves = AdmitOne(); }
  ASSERT_TRUE(refused.Send(ControlType::kStop, "!").ok());
  Serve();
  EXPECT_EQ(heard_, "2! ");
  EXPECT_EQ(gone_, "3 2 ");
  EXPECT_FALSE(refused.Receive().ok());
  EXPECT_TRUE(stays.Receive().ok());
  EXPECT_NE(commands_.Find(1), nullptr);
  EXPECT_EQ(commands_.Find(2), nullptr);
  commands_.Close(1);
  EXPECT_TRUE(commands_.is_empty());
}

TEST_F(ConnectedCommandsTest, WhoHasARecordingMaySayNothing) {
  commands_.set_patience(0);
  ControlChannel silent = AdmitOne();
  ControlChannel recording = AdmitOne();
  commands_.Find(2)->has_recording = true;
  Serve();
  EXPECT_EQ(gone_, "1 ");
  EXPECT_EQ(commands_.MillisecondsToNext(), -1);
}

TEST_F(ConnectedCommandsTest, AStartIsToldOnceToWhomItIsOwed) {
  ControlChannel first = AdmitOne();
  ControlChannel second = AdmitOne();
  commands_.Find(2)->awaits_start = true;
  commands_.TellStarted();
  commands_.TellStarted();
  EXPECT_FALSE(On(first).has_value());
  const std::optional<ControlMessage> told = On(second);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->type, ControlType::kStarted);
  EXPECT_FALSE(On(second).has_value());
}

}  // namespace
}  // namespace heapprofd
