// With a socket in place of fanotify.
#include "attach/gate/held_execs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fanotify.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <utility>

namespace heapprofd {
namespace {

constexpr uint64_t kNever = ~uint64_t{0} - 1;
constexpr uid_t kSomebody = 1000;

class HeldExecsTest : public testing::Test {
 protected:
  HeldExecsTest() {
    std::array<int, 2> fds{-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()), 0);
    kernels_ = ScopedFd(fds[0]);
    ours_ = ScopedFd(fds[1]);
    held_.emplace(ours_.get());
  }

  // Gives the serial; `file`: the event's descriptor.
  uint64_t Add(HeldExecs::Holder holder,
               uint64_t until_ns = kNever,
               int* file = nullptr) {
    const uint64_t serial = held_->next_serial();
    ScopedFd event(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (file != nullptr)
      *file = event.get();
    held_->Add(std::move(event),
               {.holder = holder, .tid = 1, .user = kSomebody, .until_ns = until_ns});
    return serial;
  }

  // Descriptor of the next event that was permitted; -1: none.
  int Permitted() {
    fanotify_response response{};
    return recv(kernels_.get(), &response, sizeof(response), MSG_DONTWAIT) ==
                   static_cast<ssize_t>(sizeof(response))
               ? response.fd
               : -1;
  }

  const int first_ = 0;
  const int second_ = 0;
  ScopedFd kernels_;
  ScopedFd ours_;
  std::optional<HeldExecs> held_;
};

TEST_F(HeldExecsTest, WhoeverIsAllowedIsHeldUntilItsHolderIsDone) {
  int file = -1;
  const uint64_t serial = Add(&first_, kNever, &file);
  EXPECT_TRUE(held_->IsHeldFor(&first_, 1));
  EXPECT_FALSE(held_->IsHeldFor(&second_, 1));
  EXPECT_EQ(Permitted(), -1);
  held_->AllowAt(&first_, serial, 0);
  held_->AllowOverdue();
  EXPECT_EQ(Permitted(), file);
  EXPECT_TRUE(held_->IsHeldFor(&first_, 1));
  held_->Done(&first_, serial);
  EXPECT_EQ(Permitted(), -1);  // it has it
  EXPECT_FALSE(held_->IsHeldFor(&first_, 1));
}

TEST_F(HeldExecsTest, OnlyItsHolderHasASayAndNotForLonger) {
  const uint64_t serial = Add(&first_, 0);
  held_->Done(&second_, serial);
  held_->AllowAt(&first_, serial + 1, 0);
  EXPECT_EQ(Permitted(), -1);
  held_->AllowAt(&first_, serial, kNever);
  held_->AllowOverdue();
  EXPECT_NE(Permitted(), -1);
}

TEST_F(HeldExecsTest, TheEndOfAHolderIsTheEndOfTheWaiting) {
  Add(&first_);
  Add(&second_);
  held_->DoneWithAll(&first_);
  EXPECT_NE(Permitted(), -1);
  EXPECT_EQ(Permitted(), -1);
  EXPECT_TRUE(held_->IsHeldFor(&second_, 1));
}

TEST_F(HeldExecsTest, TheNextOneIsTheFirstThatStillWaits) {
  EXPECT_EQ(held_->next_ns(), ~uint64_t{0});
  Add(&first_, kNever);
  Add(&first_, 1);
  EXPECT_EQ(held_->next_ns(), 1u);
  held_->AllowOverdue();
  EXPECT_EQ(held_->next_ns(), kNever);
}

TEST_F(HeldExecsTest, OneUserGetsAShare) {
  for (size_t i = 0; i < HeldExecs::kMax / HeldExecs::kUserShare; ++i) {
    EXPECT_TRUE(held_->HasRoomFor(kSomebody));
    Add(&first_);
  }
  EXPECT_FALSE(held_->HasRoomFor(kSomebody));
  EXPECT_TRUE(held_->HasRoomFor(kSomebody + 1));
  EXPECT_TRUE(held_->HasRoomFor(0));
}

}  // namespace
}  // namespace heapprofd
