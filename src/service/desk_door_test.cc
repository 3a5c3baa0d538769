// The door of an engine, with the test as the front desk behind the link.
#include "service/desk_door.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace heapprofd {
namespace {

class Guestbook : public Host {
 public:
  void AdmitCommand(Visitor visitor) override { commands.push_back(std::move(visitor)); }

  Reply AdmitProgram(Visitor& visitor) override {
    programs.push_back(visitor.pid);
    return reply;
  }

  void NoteTaken(pid_t pid) override { taken.push_back(pid); }

  void NoteMissed(pid_t pid) override { missed.push_back(pid); }

  void DumpAll(const std::string& label) override { dumps.push_back(label); }

  void Leave() override { is_told_to_leave = true; }

  std::vector<Visitor> commands;
  std::vector<pid_t> programs;
  Reply reply = Reply::kTaken;
  std::vector<pid_t> taken;
  std::vector<pid_t> missed;
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
    Result<Visitor> visitor = Identify(UntrustedSocket(ScopedFd(fds[0])));
    EXPECT_TRUE(visitor.ok());
    visitor.value().is_command = is_command;
    visitor.value().others = others;
    EXPECT_TRUE(SendVisitor(*desk_, visitor.value()));
    visitors_.push_back(std::move(visitor).value());
    return ScopedFd(fds[1]);
  }

  std::optional<Link> desk_;
  std::optional<DeskDoor> door_;
  Guestbook host_;
  std::vector<Visitor> visitors_;  // the front desk has them, too
};

TEST_F(DeskDoorTest, VisitorsComeInAsWhatTheyAre) {
  const ScopedFd program = SendVisitorToDoor(/*is_command=*/false);
  const ScopedFd command = SendVisitorToDoor(/*is_command=*/true);
  door_->Serve(host_);
  EXPECT_EQ(host_.programs, std::vector<pid_t>{getpid()});
  ASSERT_EQ(host_.commands.size(), 1u);
  EXPECT_TRUE(host_.commands[0].is_command);
  EXPECT_EQ(host_.commands[0].pid, getpid());
  EXPECT_TRUE(door_->is_empty());
}

TEST_F(DeskDoorTest, WhatBecameOfAProgramIsToldByItsNumber) {
  const ScopedFd command = SendVisitorToDoor(/*is_command=*/true);
  std::vector<ScopedFd> programs;
  uint64_t number = 1;
  for (const auto& [reply, type] : {std::pair(Reply::kUnwanted, LinkType::kPassOn),
                                    std::pair(Reply::kTaken, LinkType::kTakenHere),
                                    std::pair(Reply::kSentAway, LinkType::kAnswered)}) {
    programs.push_back(SendVisitorToDoor(/*is_command=*/false));
    host_.reply = reply;
    door_->Serve(host_);
    const LinkMessage said = Said();
    EXPECT_EQ(said.type, type);
    EXPECT_EQ(said.number, ++number);
    EXPECT_TRUE(said.fds.empty());
  }
}

TEST_F(DeskDoorTest, AProgramThatIsPassedOnIsStillConnected) {
  const ScopedFd program = SendVisitorToDoor(/*is_command=*/false);
  host_.reply = Reply::kUnwanted;
  door_->Serve(host_);
  Decline(visitors_[0]);
  std::array<char, 64> answer{};
  EXPECT_GT(recv(program.get(), answer.data(), answer.size(), MSG_DONTWAIT), 0);
}

TEST_F(DeskDoorTest, WhatHasNoRoomIsToldWhenThereIs) {
  // The only number of others that is told is that of a command's.
  const ScopedFd command = SendVisitorToDoor(/*is_command=*/true, /*others=*/1);
  door_->Serve(host_);
  size_t filled = 0;
  while (door_->DumpOthers("x") == 1 && filled < 100'000)
    ++filled;
  const ScopedFd program = SendVisitorToDoor(/*is_command=*/false);
  door_->Serve(host_);
  EXPECT_GT(door_->MillisecondsToNext(), 0);
  bool is_told = false;
  for (size_t i = 0; i < 2 * filled + 10 && !is_told; ++i) {
    door_->Serve(host_);
    const auto said = desk_->Receive();
    ASSERT_TRUE(said.ok());
    is_told = said.value() && said.value()->type == LinkType::kTakenHere;
  }
  EXPECT_TRUE(is_told);
}

TEST_F(DeskDoorTest, WhatConcernsTheHostReachesIt) {
  ASSERT_TRUE(desk_->Send({.type = LinkType::kTaken, .number = 7}));
  ASSERT_TRUE(desk_->Send({.type = LinkType::kMissed, .number = 8}));
  ASSERT_TRUE(desk_->Send({.type = LinkType::kDump, .text = "label"}));
  door_->Serve(host_);
  EXPECT_EQ(host_.taken, std::vector<pid_t>{7});
  EXPECT_EQ(host_.missed, std::vector<pid_t>{8});
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
  EXPECT_EQ(Said().type, LinkType::kTakenHere);
  door_->SayIdle();
  const LinkMessage idle = Said();
  EXPECT_EQ(idle.type, LinkType::kIdle);
  EXPECT_EQ(idle.number, 1u);
  ASSERT_TRUE(desk_->Send({.type = LinkType::kLeave}));
  door_->Serve(host_);
  EXPECT_TRUE(door_->may_leave());
}

TEST_F(DeskDoorTest, WhoeverIsIdleSaysSoAgain) {
  EXPECT_EQ(door_->MillisecondsToNext(), -1);
  door_->SayIdle();
  EXPECT_EQ(Said().type, LinkType::kIdle);
  door_->SayIdle();  // not at once
  const int wait_ms = door_->MillisecondsToNext();
  EXPECT_GT(wait_ms, 0);
  EXPECT_LE(wait_ms, 10'000);
  const Result<std::optional<LinkMessage>> nothing = desk_->Receive();
  EXPECT_TRUE(nothing.ok() && !nothing.value());
  bool is_said = false;
  for (const uint64_t end_ns = MonotonicNs() + 60'000'000'000;
       !is_said && MonotonicNs() < end_ns;) {
    pollfd readable{.fd = desk_->fd(), .events = POLLIN, .revents = 0};
    poll(&readable, 1, door_->MillisecondsToNext());
    door_->SayIdle();
    const auto said = desk_->Receive();
    is_said = said.ok() && said.value() && said.value()->type == LinkType::kIdle;
  }
  EXPECT_TRUE(is_said);
}

TEST_F(DeskDoorTest, WithoutAFrontDeskTheHostLeaves) {
  desk_.reset();
  door_->Serve(host_);
  EXPECT_TRUE(host_.is_told_to_leave);
  EXPECT_TRUE(door_->may_leave());
}

TEST_F(DeskDoorTest, OthersAreServedUntilThereIsAnAnswer) {
  std::vector<ScopedFd> programs;
  const Result<GateEnds> watcher = door_->Watch([&] {
    door_->Serve(host_);
    if (programs.empty()) {
      EXPECT_EQ(Said().type, LinkType::kWatch);
      programs.push_back(SendVisitorToDoor(/*is_command=*/false));
    } else if (!host_.programs.empty() && host_.dumps.empty()) {
      ASSERT_TRUE(desk_->Send({.type = LinkType::kDump, .text = "early"}));
      ASSERT_TRUE(
          desk_->Send({.type = LinkType::kWatcher}, {STDERR_FILENO, STDERR_FILENO}));
    }
  });
  ASSERT_TRUE(watcher.ok()) << watcher.status().message();
  EXPECT_TRUE(watcher.value().socket.valid());
  EXPECT_EQ(host_.programs.size(), 1u);
  EXPECT_EQ(host_.dumps, std::vector<std::string>{"early"});
}

TEST_F(DeskDoorTest, WithoutAFrontDeskNothingIsWatched) {
  const Result<GateEnds> watcher = door_->Watch([&] {
    desk_.reset();
    door_->Serve(host_);
  });
  EXPECT_FALSE(watcher.ok());
  EXPECT_TRUE(host_.is_told_to_leave);
}

TEST_F(DeskDoorTest, WhyNothingCanBeWatchedIsToldOn) {
  ASSERT_TRUE(desk_->Send({.type = LinkType::kWatcher, .text = "no leave here"}));
  const Result<GateEnds> watcher = door_->Watch([&] { door_->Serve(host_); });
  ASSERT_FALSE(watcher.ok());
  EXPECT_EQ(watcher.status().message(), "no leave here");
}

// It has a place at the gate, of which its user has a few.
TEST_F(DeskDoorTest, AWatcherThatNobodyWaitsForIsNotKept) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const ScopedFd ours(ends[0]);
  ScopedFd theirs(ends[1]);
  ASSERT_TRUE(desk_->Send({.type = LinkType::kWatcher}, {theirs.get(), STDERR_FILENO}));
  theirs.reset();
  door_->Serve(host_);
  char byte = 0;
  EXPECT_EQ(read(ours.get(), &byte, 1), 0) << "somebody still holds the other end";
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
