// The watchers' end of a connection, with the test as the gate.
#include "attach/gate/gate_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <optional>
#include <string>

namespace heapprofd {
namespace {

class GateLinkTest : public testing::Test {
 protected:
  GateLinkTest() {
    GateEnds watchers;
    EXPECT_TRUE(OpenGateEnds(&watchers, &gate_));
    link_.emplace(std::move(watchers));
  }

  void Tell(GateNews news, const std::string& text) {
    const GateMessage message{.news = news};
    std::string bytes(reinterpret_cast<const char*>(&message), sizeof(message));
    bytes += text;
    EXPECT_EQ(send(gate_.socket.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }

  void Hang() { gate_ = {}; }

  GateEnds gate_;
  std::optional<GateLink> link_;
  std::string note_;
};

TEST_F(GateLinkTest, WhatIsNotWatchedIsANote) {
  Tell(GateNews::kReady, "not all file systems");
  const Status status = link_->Begin(ExecNames(), &note_);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(note_, "not all file systems");
}

// It has ended the connection, too: another gate would say the same.
TEST_F(GateLinkTest, ARefusalIsToldAsItWasSaid) {
  Tell(GateNews::kRefused, "too many recordings by name run already");
  Hang();
  const Status status = link_->Begin(ExecNames(), &note_);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "too many recordings by name run already");
}

TEST_F(GateLinkTest, MoreNamesThanAGateTakesAreNotEvenSaid) {
  ExecNames names;
  for (size_t i = 0; i <= ExecNames::kMaxCount; ++i)
    names.AddName("name" + std::to_string(i));
  const Status status = link_->Begin(names, &note_);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(
      status.message(),
      "cannot watch for new processes: too many names are given; use a pattern with *");
}

TEST_F(GateLinkTest, OfAGateThatHasEndedAnotherOneCanBeAsked) {
  Hang();
  const Status status = link_->Begin(ExecNames(), &note_);
  EXPECT_EQ(status.code(), StatusCode::kTryAgain);
  EXPECT_EQ(
      status.message(),
      "cannot watch for new processes: the process that does so has ended; see what "
      "stops or kills heapprofd-gate");
}

}  // namespace
}  // namespace heapprofd
