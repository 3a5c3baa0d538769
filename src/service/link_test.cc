#include "service/link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files/passed_fds.h"

namespace heapprofd {
namespace {

class LinkTest : public testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    link_.emplace(ScopedFd(fds[0]));
    other_ = ScopedFd(fds[1]);
  }

  std::optional<Link> link_;
  ScopedFd other_;
};

TEST_F(LinkTest, MessagesArriveWholeWithTheirDescriptors) {
  Result<std::pair<Link, Link>> pair = Link::Pair();
  ASSERT_TRUE(pair.ok());
  auto& [here, there] = pair.value();
  ASSERT_TRUE(
      here.Send({.type = LinkType::kDump, .number = ~0ull, .text = "label"}, {0, 1}));
  const auto received = there.Receive();
  ASSERT_TRUE(received.ok() && received.value());
  EXPECT_EQ(received.value()->type, LinkType::kDump);
  EXPECT_EQ(received.value()->number, ~0ull);
  EXPECT_EQ(received.value()->text, "label");
  EXPECT_EQ(received.value()->fds.size(), 2u);
  const auto none = there.Receive();
  EXPECT_TRUE(none.ok() && !none.value());
}

TEST_F(LinkTest, ATextThatIsTooLongIsCut) {
  Result<std::pair<Link, Link>> pair = Link::Pair();
  ASSERT_TRUE(pair.ok());
  ASSERT_TRUE(pair.value().first.Send(
      {.type = LinkType::kDump, .text = std::string(3 * kMaxLinkText, 'x')}));
  const auto received = pair.value().second.Receive();
  ASSERT_TRUE(received.ok() && received.value());
  EXPECT_EQ(received.value()->text.size(), kMaxLinkText);
}

TEST_F(LinkTest, NonsenseIsSaidToBeNonsense) {
  for (const std::string& bytes :
       {std::string("x"), std::string(15, '\0'), std::string(16, '\xff'),
        std::string(17, '\0'), std::string(100'000, '\0')}) {
    ASSERT_EQ(send(other_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    const auto received = link_->Receive();
    ASSERT_FALSE(received.ok()) << bytes.size();
    EXPECT_EQ(received.status().code(), StatusCode::kCorrupt);
    EXPECT_EQ(received.status().message(),
              "cannot understand a message between processes");
  }
}

TEST_F(LinkTest, TheEndIsSeenAndNothingCanBeSentThen) {
  other_.reset();
  const auto received = link_->Receive();
  ASSERT_FALSE(received.ok());
  EXPECT_EQ(received.status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(link_->Send({.type = LinkType::kLeave}));
}

TEST_F(LinkTest, WhoeverDoesNotReadIsNotWaitedFor) {
  int sent = 0;
  while (link_->Send({.type = LinkType::kDump, .text = std::string(1000, 'x')}) &&
         sent < 100'000)
    ++sent;
  EXPECT_GT(sent, 10);
  EXPECT_LT(sent, 100'000);
}

TEST_F(LinkTest, WhatHasNoRoomArrivesLaterAndInOrder) {
  Result<std::pair<Link, Link>> pair = Link::Pair();
  ASSERT_TRUE(pair.ok());
  auto& [here, there] = pair.value();
  uint64_t said = 0;
  while (here.SendRest() && said < 100'000)
    ASSERT_TRUE(here.Say({.type = LinkType::kTaken, .number = said++}));
  ASSERT_FALSE(here.SendRest());
  LinkMessage last{.type = LinkType::kWatcher, .number = said++};
  last.fds.emplace_back(dup(0));
  ASSERT_TRUE(here.Say(std::move(last)));
  EXPECT_FALSE(here.Send({.type = LinkType::kKnown}));  // it would overtake the others
  for (uint64_t i = 0; i < said; ++i) {
    const auto received = there.Receive();
    ASSERT_TRUE(received.ok() && received.value()) << i;
    ASSERT_EQ(received.value()->number, i);
    EXPECT_EQ(received.value()->fds.size(), i + 1 == said ? 1u : 0u);
    here.SendRest();
  }
}

TEST_F(LinkTest, WhoeverNeverReadsIsGivenUp) {
  Result<std::pair<Link, Link>> pair = Link::Pair();
  ASSERT_TRUE(pair.ok());
  size_t said = 0;
  while (pair.value().first.Say({.type = LinkType::kTaken}) && said < 100'000)
    ++said;
  EXPECT_GT(said, kMaxUnsent);
  EXPECT_LT(said, 100'000u);
}

TEST_F(LinkTest, AnEngineSendsNoDescriptors) {
  Result<std::pair<Link, Link>> pair = Link::Pair();
  ASSERT_TRUE(pair.ok());
  if (!RefuseFds(pair.value().first.fd()))
    GTEST_SKIP() << "this kernel cannot refuse descriptors";
  EXPECT_TRUE(pair.value().second.Send({.type = LinkType::kPassOn}, {0}));
  const auto received = pair.value().first.Receive();
  EXPECT_TRUE(received.ok() && !received.value());
}

TEST_F(LinkTest, AVisitorIsWhomTheKernelSaysHeIs) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const ScopedFd far(fds[1]);
  Result<Visitor> visitor = Identify(UntrustedSocket(ScopedFd(fds[0])));
  ASSERT_TRUE(visitor.ok());
  visitor.value().is_command = true;
  EXPECT_EQ(visitor.value().pid, getpid());
  Result<std::pair<Link, Link>> pair = Link::Pair();
  ASSERT_TRUE(pair.ok());
  visitor.value().others = 7;
  ASSERT_TRUE(SendVisitor(pair.value().first, visitor.value()));
  auto received = pair.value().second.Receive();
  ASSERT_TRUE(received.ok() && received.value());
  const Result<Visitor> taken = TakeVisitor(std::move(*received.value()));
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken.value().pid, getpid());
  EXPECT_EQ(taken.value().rights, visitor.value().rights);
  EXPECT_EQ(taken.value().rights.user, geteuid());
  EXPECT_TRUE(taken.value().is_command);
  EXPECT_EQ(taken.value().others, 7u);
}

TEST_F(LinkTest, SomethingThatIsNoConnectionIsNoVisitor) {
  LinkMessage without;
  EXPECT_FALSE(TakeVisitor(std::move(without)).ok());
  LinkMessage file;
  file.fds.emplace_back(dup(0));
  EXPECT_FALSE(TakeVisitor(std::move(file)).ok());
  EXPECT_TRUE(Identify(UntrustedSocket(ScopedFd(dup(0))))
                  .status()
                  .message()
                  .starts_with("cannot tell who has connected: "));
}

}  // namespace
}  // namespace heapprofd
