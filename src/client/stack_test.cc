// Walks of made-up stacks by made-up rules, and the bounds that keep a walk inside mapped
// memory.
#include "client/stack.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "rt/syscall.h"
#include "walk/rule_writer.h"
#include "walk/test_rules.h"

namespace heapprofd {
namespace {

constexpr uint64_t kCode = 0x400000;

// Frames of `frame_words` words each; frame n returns to the code address kCode + n.
class WalkTest : public testing::Test {
 protected:
  void Build(size_t frames, size_t frame_words) {
    words_.assign(frames * frame_words, 0);
    for (size_t n = 0; n < frames; ++n) {
      words_[(n + 1) * frame_words - 1] = kCode + n + 1;
      writer_.Insert(kCode + n,
                     TestRule(RuleKind::kSp, static_cast<int32_t>(frame_words * 8)));
    }
    writer_.Insert(kCode + frames, {.kind = RuleKind::kEnd});
  }

  uint64_t AddressOf(size_t word) const {
    return reinterpret_cast<uint64_t>(words_.data() + word);
  }

  StackBounds Bounds() const {
    return {.low = AddressOf(0), .high = AddressOf(words_.size())};
  }

  WalkResult Walk() {
    *memo_ = {};  // the tests change rules
    const WalkResult result =
        WalkStack(*rules_, {.key = kCode, .sp = AddressOf(0), .bp = 0},
                  LiveStack(Bounds(), Bounds()), *memo_);
    TakeKeys();
    return result;
  }

  void TakeKeys() {
    keys_.clear();
    for (size_t i = 0; i < memo_->frame_count(); ++i)
      keys_.push_back(memo_->key(i));
  }

  std::vector<uint64_t> words_;
  std::vector<uint64_t> keys_;
  std::unique_ptr<StackMemo> memo_ = std::make_unique<StackMemo>();
  std::unique_ptr<RuleTable> rules_ = std::make_unique<RuleTable>();
  RuleWriter writer_{rules_.get()};
};

TEST_F(WalkTest, AWalkListsEveryFrameUpToTheOutermost) {
  Build(5, 4);
  const WalkResult result = Walk();
  EXPECT_EQ(result.end, WalkEnd::kComplete);
  EXPECT_EQ(keys_, (std::vector<uint64_t>{kCode, kCode + 1, kCode + 2, kCode + 3,
                                          kCode + 4, kCode + 5}));
  EXPECT_EQ(result.stopped.key, kCode + 5);
  EXPECT_EQ(result.stopped.sp, AddressOf(20));
}

TEST_F(WalkTest, AFrameWithoutARuleIsTheLastOfTheListAndWhereTheEngineGoesOn) {
  Build(5, 4);
  writer_.Clear();
  writer_.Insert(kCode, TestRule(RuleKind::kSp, 32));
  const WalkResult result = Walk();
  EXPECT_EQ(result.end, WalkEnd::kNoRule);
  EXPECT_EQ(keys_, (std::vector<uint64_t>{kCode, kCode + 1}));
  EXPECT_EQ(result.stopped.key, kCode + 1);
  EXPECT_EQ(result.stopped.sp, AddressOf(4));
}

TEST_F(WalkTest, AKeyThatIsNoCodeEndsTheWalkAndIsNoFrame) {
  Build(5, 4);
  writer_.Insert(kCode + 2, {.kind = RuleKind::kNoCode});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Walk().end, WalkEnd::kCut);
    EXPECT_EQ(keys_, (std::vector<uint64_t>{kCode, kCode + 1}));
  }
  writer_.Insert(kCode + 2, TestRule(RuleKind::kSp, 32));
  EXPECT_EQ(Walk().end, WalkEnd::kComplete);
  EXPECT_EQ(keys_.size(), 6u);
}

TEST_F(WalkTest, AnInnermostKeyThatIsNoCodeAsksTheEngine) {
  Build(5, 4);
  writer_.Insert(kCode, {.kind = RuleKind::kNoCode});
  const WalkResult result = Walk();
  EXPECT_EQ(result.end, WalkEnd::kNoRule);
  EXPECT_EQ(result.stopped.key, kCode);
}

TEST_F(WalkTest, ACutEndsTheWalkWithoutAskingTheEngine) {
  Build(5, 4);
  writer_.Insert(kCode + 2, {.kind = RuleKind::kStop});
  EXPECT_EQ(Walk().end, WalkEnd::kCut);
  EXPECT_EQ(keys_.size(), 3u);
}

TEST_F(WalkTest, ADeepStackKeepsItsInnermostFrames) {
  Build(kMaxFrames + 10, 2);
  const WalkResult result = Walk();
  EXPECT_EQ(result.end, WalkEnd::kTooDeep);
  EXPECT_EQ(keys_.size(), kMaxFrames);
  EXPECT_EQ(keys_.back(), kCode + kMaxFrames - 1);
}

TEST_F(WalkTest, AStackOfExactlyTheMostFramesIsComplete) {
  Build(kMaxFrames - 1, 2);
  EXPECT_EQ(Walk().end, WalkEnd::kComplete);
  EXPECT_EQ(keys_.size(), kMaxFrames);
}

TEST_F(WalkTest, ARuleThatLeadsOutOfTheStackIsBadMemory) {
  Build(3, 4);
  writer_.Insert(kCode + 3, TestRule(RuleKind::kSp, 32));
  EXPECT_EQ(Walk().end, WalkEnd::kBadMemory);
  EXPECT_EQ(keys_.size(), 4u);
  writer_.Insert(kCode + 1, kFramePointerRule);
  EXPECT_EQ(Walk().end, WalkEnd::kBadMemory);  // bp is 0
  EXPECT_EQ(keys_.size(), 2u);
}

TEST_F(WalkTest, EqualStacksHaveEqualHashesAndOthersDoNot) {
  Build(100, 2);
  std::set<uint64_t> hashes;
  for (size_t n = 0; n <= 100; ++n) {
    writer_.Insert(kCode + n, {.kind = RuleKind::kEnd});
    const uint64_t hash = Walk().hash;
    EXPECT_NE(hash, 0u);
    EXPECT_EQ(Walk().hash, hash);
    EXPECT_TRUE(hashes.insert(hash).second) << n;
    writer_.Insert(kCode + n, TestRule(RuleKind::kSp, 16));
  }
}

TEST_F(WalkTest, ASignalFrameLeadsFromAnotherStackBackToTheThreadsOwn) {
  Build(3, 4);
  writer_.Insert(kCode + 0x1000, {.kind = RuleKind::kSignal});
  std::vector<uint64_t> alternate(80, 0);
  alternate[kUcontextPc / 8] = kCode;  // interrupted: its key is one higher
  alternate[kUcontextSp / 8] = AddressOf(4);
  const auto low = reinterpret_cast<uint64_t>(alternate.data());
  const WalkResult result = WalkStack(
      *rules_, {.key = kCode + 0x1000, .sp = low, .bp = 0},
      LiveStack({.low = low, .high = low + alternate.size() * 8}, Bounds()), *memo_);
  TakeKeys();
  EXPECT_EQ(result.end, WalkEnd::kComplete);
  EXPECT_EQ(keys_,
            (std::vector<uint64_t>{kCode + 0x1000, kCode + 1, kCode + 2, kCode + 3}));
}

TEST(LiveStackTest, OnlyWholeAlignedWordsInsideTheBoundsAreRead) {
  const std::vector<uint64_t> words = {11, 22, 33, 44};
  const auto low = reinterpret_cast<uint64_t>(words.data());
  const LiveStack stack({.low = low + 8, .high = low + 24}, {.low = 0, .high = 0});
  uint64_t value = 0;
  EXPECT_TRUE(stack.Read(low + 8, &value));
  EXPECT_EQ(value, 22u);
  EXPECT_TRUE(stack.Read(low + 16, &value));
  for (const uint64_t address :
       {low, low + 9, low + 20, low + 24, uint64_t{0}, UINT64_MAX, UINT64_MAX - 7})
    EXPECT_FALSE(stack.Read(address, &value)) << address - low;
}

TEST(LiveStackTest, ACopyOfAForeignStackEndsWithThePageOfItsStackPointer) {
  const StackBounds own{.low = 0x10000, .high = 0x20010};
  const StackBounds foreign{.low = 0x500800, .high = 0x600000};
  const LiveStack stack(foreign, own);
  EXPECT_EQ(stack.CopyEnd(0x10008), 0x20010u);
  EXPECT_EQ(stack.CopyEnd(0x500800), 0x501000u);
  EXPECT_EQ(stack.CopyEnd(0x700000), 0x700000u);
  EXPECT_EQ(LiveStack({.low = 0x500800, .high = 0x500900}, own).CopyEnd(0x500800),
            0x500900u);
}

class ForeignStackTest : public testing::Test {
 protected:
  void Publish(std::vector<std::pair<uint64_t, uint64_t>> regions) {
    for (size_t i = 0; i < regions.size(); ++i) {
      regions_->regions[i].low = regions[i].first;
      regions_->regions[i].high = regions[i].second;
    }
    regions_->count = static_cast<uint32_t>(regions.size());
    regions_->version += 2;
  }

  void ExpectPageOf(uint64_t sp) {
    const StackBounds bounds = ForeignStack(*regions_, sp);
    EXPECT_FALSE(bounds.is_known);
    EXPECT_EQ(bounds.low, sp & ~uint64_t{7});
    EXPECT_EQ(bounds.high, (sp | 4095) + 1);
  }

  std::unique_ptr<StackRegions> regions_ = std::make_unique<StackRegions>();
};

TEST_F(ForeignStackTest, AStackPointerInAPublishedRegionIsBoundedByIt) {
  Publish({{0x10000, 0x20000}, {0x20000, 0x28000}, {0x90000, 0x91000}});
  for (const auto& [sp, high] : {std::pair{0x10000ull, 0x20000ull},
                                 {0x1ffffull, 0x20000ull},
                                 {0x20000ull, 0x28000ull},
                                 {0x90fffull, 0x91000ull}}) {
    const StackBounds bounds = ForeignStack(*regions_, sp);
    EXPECT_TRUE(bounds.is_known);
    EXPECT_EQ(bounds.low, sp & ~uint64_t{7});
    EXPECT_EQ(bounds.high, high);
  }
}

TEST_F(ForeignStackTest, OutsideEveryRegionOnlyThePageIsKnown) {
  ExpectPageOf(0x5000);
  Publish({{0x10000, 0x20000}, {0x90000, 0x91000}});
  for (const uint64_t sp : {0x5008ull, 0xffffull, 0x20000ull, 0x91000ull, 0xfff000ull})
    ExpectPageOf(sp);
}

TEST_F(ForeignStackTest, WhileTheEngineIsWritingOnlyThePageIsKnown) {
  Publish({{0x10000, 0x20000}});
  regions_->version += 1;
  ExpectPageOf(0x10000);
}

TEST_F(ForeignStackTest, RegionsOfAnEarlierLongerListAreNotUsed) {
  Publish({{0x10000, 0x20000}, {0x90000, 0x91000}});
  Publish({{0x10000, 0x20000}});
  ExpectPageOf(0x90000);
}

TEST_F(ForeignStackTest, AFullListIsSearchedToItsEnd) {
  std::vector<std::pair<uint64_t, uint64_t>> regions;
  for (uint64_t i = 1; i <= kMaxStackRegions; ++i)
    regions.emplace_back(i * 0x10000, i * 0x10000 + 0x8000);
  Publish(regions);
  for (uint64_t i = 1; i <= kMaxStackRegions; ++i) {
    EXPECT_EQ(ForeignStack(*regions_, i * 0x10000 + 8).high, i * 0x10000 + 0x8000);
    ExpectPageOf(i * 0x10000 + 0x8000);
  }
  ExpectPageOf(uint64_t{1} << 46);
}

class ThreadLayoutTest : public testing::Test {
 protected:
  void SetUp() override { layout_.Discover(rt::ThreadPointer(), getpid()); }

  // Checks the calling thread, whose stack holds `local`.
  void ExpectOwnStack(const void* local) const {
    const auto sp = reinterpret_cast<uint64_t>(local) & ~uint64_t{7};
    EXPECT_EQ(layout_.ThreadId(rt::ThreadPointer()), static_cast<uint32_t>(gettid()));
    const StackBounds bounds = layout_.OwnStack(rt::ThreadPointer(), sp);
    EXPECT_TRUE(bounds.is_known);
    EXPECT_EQ(bounds.low, sp);
    uint64_t value = 0;
    EXPECT_TRUE(LiveStack(bounds, bounds).Read(bounds.high - 8, &value));
  }

  ThreadLayout layout_;
};

TEST_F(ThreadLayoutTest, TheMainThreadsStackIsKnown) {
  const int local = 0;
  ExpectOwnStack(&local);
}

TEST_F(ThreadLayoutTest, AnotherThreadsStackIsKnown) {
  std::thread([this] {
    const int local = 0;
    ExpectOwnStack(&local);
  }).join();
}

TEST_F(ThreadLayoutTest, AStackPointerElsewhereIsNotOnTheOwnStack) {
  const auto heap = std::make_unique<uint64_t>();
  const auto sp = reinterpret_cast<uint64_t>(heap.get());
  EXPECT_FALSE(layout_.OwnStack(rt::ThreadPointer(), sp).is_known);
  std::thread([this, sp] {
    const StackBounds bounds = layout_.OwnStack(rt::ThreadPointer(), sp);
    EXPECT_FALSE(bounds.is_known);
    EXPECT_FALSE(bounds.Contains(sp));
  }).join();
}

TEST(UndiscoveredThreadLayoutTest, NothingIsKnown) {
  const ThreadLayout layout;
  const int local = 0;
  EXPECT_EQ(layout.ThreadId(rt::ThreadPointer()), 0u);
  EXPECT_FALSE(
      layout.OwnStack(rt::ThreadPointer(), reinterpret_cast<uint64_t>(&local)).is_known);
}

}  // namespace
}  // namespace heapprofd
