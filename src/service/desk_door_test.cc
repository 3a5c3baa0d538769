// The door of an engine, with the test as the front desk behind the link.
#include "service/desk_door.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace heapprofd {
namespace {

class Guestbook : public Host {
 public:
  void Admit(Visitor visitor) override { admitted.push_back(std::move(visitor)); }

  void NoteTaken(pid_t pid) override { taken.push_back(pid); }

  void DumpAll(const std::string& label) override { dumps.push_back(label); }

  void Leave() override { is_told_to_leave = true; }

  std::vector<Visitor> admitted;
  std::vector<pid_t> taken;
  std::vector<std::string> dumps;
  bool is_told_to_leave = false;
};

class DeskDoorTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::pair<Link, Link>> links = Link::Pair();
    ASSERT_TRUE(links.ok());
    desk_.emplace(std::move(links.value().first));
    door_.emplace(std::move(links.value().second));
  }

  // What the engine has said; kIdle, kRecordings and the like.
  LinkMessage Said() {
    Result<std::optional<LinkMessage>> message = desk_->Receive();
    EXPECT_TRUE(message.ok() && message.value());
    return message.ok() && message.value() ? std::move(*message.value()) : LinkMessage();
  }

  // Gives the visitor's end of the connection.
  ScopedFd SendVisitorToDoor(bool is_command, uint64_t others = 0) {
    std::array<int, 2> fds{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    Result<Visitor> visitor = Identify(ScopedFd(fds[0]));
    EXPECT_TRUE(visitor.ok());
    visitor.value().is_command = is_command;
    EXPECT_TRUE(SendVisitor(*desk_, visitor.value(), others));
    return ScopedFd(fds[1]);
  }

  std::optional<Link> desk_;
  std::optional<DeskDoor> door_;
  Guestbook host_;
};

TEST_F(DeskDoorTest, VisitorsComeInAsWhatTheyAre) {
  const ScopedFd program = SendVisitorToDoor(/*is_command=*/false);
  const ScopedFd command = SendVisitorToDoor(/*is_command=*/true);
  door_->Serve(host_);
  ASSERT_EQ(host_.admitted.size(), 2u);
  EXPECT_FALSE(host_.admitted[0].is_command);
  EXPECT_TRUE(host_.admitted[1].is_command);
  EXPECT_EQ(host_.admitted[1].pid, getpid());
  EXPECT_TRUE(door_->is_empty());
}

TEST_F(DeskDoorTest, WhatConcernsTheHostReachesIt) {
  ASSERT_TRUE(desk_->Send({.type = LinkType::kTaken, .number = 7}));
  ASSERT_TRUE(desk_->Send({.type = LinkType::kDump, .text = "label"}));
  door_->Serve(host_);
  EXPECT_EQ(host_.taken, std::vector<pid_t>{7});
  EXPECT_EQ(host_.dumps, std::vector<std::string>{"label"});
  EXPECT_FALSE(host_.is_told_to_leave);
}

TEST_F(DeskDoorTest, RecordingsAreKnownWhenTheFrontDeskSaysSo) {
  EXPECT_TRUE(door_->are_recordings_known());
  door_->SetRecordings(1, /*has_begun=*/true);
  EXPECT_FALSE(door_->are_recordings_known());
  const LinkMessage told = Said();
  EXPECT_EQ(told.type, LinkType::kRecordings);
  EXPECT_EQ(told.number, 1u);
  EXPECT_EQ(told.text, "+");
  ASSERT_TRUE(desk_->Send({.type = LinkType::kKnown}));
  door_->Serve(host_);
  EXPECT_TRUE(door_->are_recordings_known());
}

TEST_F(DeskDoorTest, NobodyLeavesWhileAVisitorIsOnHisWay) {
  door_->SayIdle();
  EXPECT_EQ(Said().number, 0u);
  const ScopedFd program = SendVisitorToDoor(/*is_command=*/false);
  ASSERT_TRUE(desk_->Send({.type = LinkType::kLeave}));
  door_->Serve(host_);
  EXPECT_FALSE(door_->may_leave());
  door_->SayIdle();
  const LinkMessage idle = Said();
  EXPECT_EQ(idle.type, LinkType::kIdle);
  EXPECT_EQ(idle.number, 1u);
  ASSERT_TRUE(desk_->Send({.type = LinkType::kLeave}));
  door_->Serve(host_);
  EXPECT_TRUE(door_->may_leave());
}

TEST_F(DeskDoorTest, WithoutAFrontDeskTheHostLeaves) {
  desk_.reset();
  door_->Serve(host_);
  EXPECT_TRUE(host_.is_told_to_leave);
  EXPECT_TRUE(door_->may_leave());
}

TEST_F(DeskDoorTest, WhatComesBeforeAnAnswerIsNotLost) {
  ASSERT_TRUE(desk_->Send({.type = LinkType::kDump, .text = "early"}));
  ASSERT_TRUE(desk_->Send({.type = LinkType::kWatcher}, {STDERR_FILENO, STDERR_FILENO}));
  const Result<GateEnds> watcher = door_->Watch();
  ASSERT_TRUE(watcher.ok()) << watcher.status().message();
  EXPECT_TRUE(watcher.value().socket.valid());
  EXPECT_EQ(door_->MillisecondsToNext(), 0);
  door_->Serve(host_);
  EXPECT_EQ(host_.dumps, std::vector<std::string>{"early"});
}

TEST_F(DeskDoorTest, WhyNothingCanBeWatchedIsToldOn) {
  ASSERT_TRUE(desk_->Send({.type = LinkType::kWatcher, .text = "no leave here"}));
  const Result<GateEnds> watcher = door_->Watch();
  ASSERT_FALSE(watcher.ok());
  EXPECT_EQ(watcher.status().message(), "no leave here");
}

TEST_F(DeskDoorTest, DumpsOfOthersAreAsMany) {
  const ScopedFd command = SendVisitorToDoor(/*is_command=*/true, /*others=*/5);
  door_->Serve(host_);
  EXPECT_EQ(door_->DumpOthers("label"), 5u);
  const LinkMessage asked = Said();
  EXPECT_EQ(asked.type, LinkType::kDumpOthers);
  EXPECT_EQ(asked.text, "label");
}

}  // namespace
}  // namespace heapprofd
