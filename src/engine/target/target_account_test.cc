#include "engine/target/target_account.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/target/test_target.h"

namespace heapprofd {
namespace {

class TargetAccountTest : public testing::Test {
 protected:
  TargetAccountTest()
      : code_(getpid(), &modules_, &profile_.mappings),
        requests_(&profile_),
        memory_(SharedMemory::Create(64 * 1024).value()),
        published_(SessionConfig(), &memory_->engine()),
        heaps_(memory_.get(), &published_),
        ring_(memory_.get(), getpid(), &clock_),
        stacks_({.profile = &profile_,
                 .memory = memory_.get(),
                 .reader = &ring_.reader(),
                 .code = &code_,
                 .clock = &clock_}),
        used_before_(UserBudget::OfEngine().used()),
        account_(kUser, {.profile = &profile_, .requests = &requests_, .code = &code_}) {}

  void Allocate(uint64_t address) {
    heaps_.Allocate(0, {.address = address, .size = 1, .interval = 1}, 1);
  }

  uint64_t Charged() const { return UserBudget::OfEngine().used() - used_before_; }

  static constexpr uid_t kUser = 12345;
  TargetProfile profile_;
  ModuleCache modules_;
  TscClock clock_;
  AddressSpace code_;
  ProgramRequests requests_;
  std::unique_ptr<SharedMemory> memory_;
  PublishedConfig published_;
  TargetHeaps heaps_;
  RingDrain ring_;
  StackResolver stacks_;
  uint64_t used_before_;
  TargetAccount account_;
};

TEST_F(TargetAccountTest, WhatIsKeptCostsLessThanARecording) {
  account_.Begin(
      {.heaps = &heaps_, .stacks = &stacks_, .max_live_samples = kMaxLiveSamples});
  for (uint64_t i = 1; i < 1000; ++i)
    Allocate(16 * i);
  account_.Charge();
  const uint64_t recording = Charged();
  EXPECT_GT(recording, heaps_.bytes());
  account_.End();
  EXPECT_LT(Charged(), recording - heaps_.bytes() + 1);
  EXPECT_GT(Charged(), 0u);
}

TEST_F(TargetAccountTest, WhatTheProfileHoldsIsCharged) {
  account_.End();
  const uint64_t empty = Charged();
  profile_.callsites.resize(1000);
  profile_.frames.resize(100);
  profile_.process.cmdline = {std::string(500, 'a')};
  account_.Charge();
  EXPECT_GE(Charged(), empty + 1000 * sizeof(Callsite) + 100 * sizeof(Frame) + 500);
}

TEST_F(TargetAccountTest, TheListOfLiveBlocksIsCharged) {
  account_.End();
  profile_.heaps.resize(1);
  account_.Charge();
  const uint64_t without = Charged();
  profile_.heaps[0].blocks.resize(1000);
  account_.Charge();
  EXPECT_EQ(Charged(), without + 1000 * sizeof(LiveBlock));
}

TEST_F(TargetAccountTest, LiveSamplesAreLimitedAsSeenNowAndThen) {
  account_.Begin({.heaps = &heaps_, .stacks = &stacks_, .max_live_samples = 2});
  EXPECT_TRUE(account_.HasRoom(0, /*samples=*/0));
  Allocate(16);
  Allocate(32);
  EXPECT_TRUE(account_.HasRoom(0, /*samples=*/2));
  EXPECT_FALSE(account_.HasRoom(0, /*samples=*/1024));
  EXPECT_TRUE(account_.has_memory());
  EXPECT_FALSE(account_.HasRoom(0, /*samples=*/1025));
}

TEST_F(TargetAccountTest, WhatOthersOfItsUserTakeIsMissing) {
  account_.Begin(
      {.heaps = &heaps_, .stacks = &stacks_, .max_live_samples = kMaxLiveSamples});
  EXPECT_TRUE(account_.HasRoom(0, /*samples=*/0));
  UserBudget::Account other(&UserBudget::OfEngine(), kUser);
  other.Set(uint64_t{1} << 60);
  EXPECT_FALSE(account_.HasRoom(0, /*samples=*/1024));
  EXPECT_FALSE(account_.has_memory());
  other.Set(0);
  EXPECT_TRUE(account_.HasRoom(0, /*samples=*/2048));
}

TEST_F(TargetAccountTest, WhenItIsGoneNothingIsCharged) {
  {
    TargetAccount account(kUser,
                          {.profile = &profile_, .requests = &requests_, .code = &code_});
    account.Charge();
    EXPECT_GT(Charged(), 0u);
  }
  EXPECT_EQ(Charged(), 0u);
}

}  // namespace
}  // namespace heapprofd
