// Stacks of this very process's code.
#include "engine/stacks/stack_interner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/target/test_target.h"
#include "wire/memory_files.h"

namespace heapprofd {
namespace {

class StackInternerTest : public testing::Test {
 protected:
  StackInternerTest()
      : memory_(SharedMemory::Create(64 * 1024).value()),
        reader_(&memory_->client().ring, memory_->ring(), memory_->ring_size()),
        code_(getpid(), &modules_, &profile_.mappings),
        frames_and_callsites_(&profile_),
        stacks_({.profile = &profile_,
                 .interner = &frames_and_callsites_,
                 .code = &code_,
                 .reader = &reader_,
                 .control = &memory_->engine().control,
                 .look_at_code = [this] { LookAtCode(); }}) {}

  void SetUp() override { ASSERT_TRUE(code_.Refresh().ok()); }

  // Other code is found the next time that somebody looks.
  void LookAtCode() {
    ++looks_;
    if (is_replaced_)
      stacks_.ForgetCode();
    is_replaced_ = false;
  }

  uint32_t Epoch() const { return memory_->engine().control.known_stacks_epoch.load(); }

  // Of its frames, innermost first: places in their mapping, or their names.
  std::vector<std::string> FramesOf(CallsiteId callsite) const {
    std::vector<std::string> frames;
    for (; callsite != kNoId; callsite = profile_.callsites[callsite].parent) {
      const Frame& frame = profile_.frames[profile_.callsites[callsite].frame];
      frames.push_back(frame.lines.empty() ? std::to_string(frame.rel_pc)
                                           : frame.lines[0].function.str());
    }
    return frames;
  }

  TargetProfile profile_;
  ModuleCache modules_{kOwnPatienceNs};
  std::unique_ptr<SharedMemory> memory_;
  RingReader reader_;
  AddressSpace code_;
  CallsiteInterner frames_and_callsites_;
  int looks_ = 0;
  bool is_replaced_ = false;
  StackInterner stacks_;
};

TEST_F(StackInternerTest, AStackAndItsOuterPartsAreKnownByTheirHashes) {
  const std::vector<uint64_t> keys = {KeyInOwnCode(4), KeyInOwnCode(8), KeyInOwnCode(12)};
  const CallsiteId whole = stacks_.Intern(keys);
  for (size_t inner = 0; inner < keys.size(); ++inner) {
    const std::span<const uint64_t> all(keys);
    EXPECT_EQ(stacks_.InternInside(HashOfStack(all.subspan(inner)), all.first(inner)),
              whole);
  }
  EXPECT_EQ(profile_.callsites.size(), 3u);
  EXPECT_EQ(looks_, 3);  // one for each frame that was new
}

TEST_F(StackInternerTest, ANewStackSharesItsLongestKnownPart) {
  const std::vector<uint64_t> known = {KeyInOwnCode(4), KeyInOwnCode(8)};
  const std::vector<uint64_t> other = {KeyInOwnCode(12), KeyInOwnCode(8)};
  const CallsiteId a = stacks_.Intern(known);
  const CallsiteId b = stacks_.Intern(other);
  EXPECT_NE(a, b);
  EXPECT_EQ(profile_.callsites[a].parent, profile_.callsites[b].parent);
  EXPECT_EQ(profile_.callsites.size(), 3u);
}

TEST_F(StackInternerTest, AStackWithoutFramesIsLost) {
  EXPECT_EQ(FramesOf(stacks_.Intern({})), std::vector<std::string>({"[stack lost]"}));
  EXPECT_EQ(profile_.quality.unknown_stacks, 0u);
}

TEST_F(StackInternerTest, AHashThatNeverArrivedHasAllStacksSentAnew) {
  const uint32_t epoch = Epoch();
  const std::vector<uint64_t> keys = {KeyInOwnCode(4)};
  EXPECT_EQ(FramesOf(stacks_.InternInside(/*outer_hash=*/77, keys)),
            std::vector<std::string>({"[stack lost]"}));
  EXPECT_EQ(profile_.quality.unknown_stacks, 1u);
  EXPECT_NE(Epoch(), epoch);
}

TEST_F(StackInternerTest, WhatIsOnItsWayMeansWhatItMeant) {
  const std::vector<uint64_t> keys = {KeyInOwnCode(4)};
  const CallsiteId before = stacks_.Intern(keys);
  const uint32_t epoch = Epoch();
  stacks_.ForgetCode();
  EXPECT_NE(Epoch(), epoch);
  EXPECT_EQ(stacks_.InternInside(HashOfStack(keys), {}), before);
  const std::vector<uint64_t> inner = {KeyInOwnCode(8)};
  const CallsiteId extended = stacks_.InternInside(HashOfStack(keys), inner);
  EXPECT_EQ(profile_.callsites[extended].parent, before);
  EXPECT_EQ(profile_.quality.unknown_stacks, 0u);
}

// Its outer part is of code that is gone: later stacks must not take it for theirs.
TEST_F(StackInternerTest, AStackDuringWhichCodeIsReplacedIsNotKnown) {
  const std::vector<uint64_t> keys = {KeyInOwnCode(4), KeyInOwnCode(8)};
  is_replaced_ = true;
  EXPECT_EQ(FramesOf(stacks_.Intern(keys)).size(), 2u);
  EXPECT_EQ(FramesOf(stacks_.InternInside(HashOfStack(keys), {})),
            std::vector<std::string>({"[stack lost]"}));
}

TEST_F(StackInternerTest, AnAddressWithoutCodeIsItsOwnFrame) {
  const std::vector<uint64_t> keys = {4097};
  EXPECT_EQ(FramesOf(stacks_.Intern(keys)), std::vector<std::string>({"4096"}));
  EXPECT_EQ(profile_.quality.unmapped_frames, 1u);
}

TEST_F(StackInternerTest, ANameIsAStackOfItsOwn) {
  const CallsiteId named = stacks_.Named("[too many stacks]");
  EXPECT_EQ(stacks_.Named("[too many stacks]"), named);
  EXPECT_EQ(FramesOf(named), std::vector<std::string>({"[too many stacks]"}));
}

}  // namespace
}  // namespace heapprofd
