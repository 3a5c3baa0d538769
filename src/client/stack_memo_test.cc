// Walks with the memory of earlier ones must give what a walk without it gives, whatever
// the thread has called and returned from in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "client/stack.h"
#include "walk/rule_writer.h"
#include "walk/test_rules.h"

namespace heapprofd {
namespace {

constexpr uint64_t kMemoCode = 0x400000;
constexpr uint64_t kFunctions = 12;
constexpr uint64_t kEndKey = kMemoCode + 0x1000;
constexpr size_t kWords = 20'000;

// Functions of three forms with small frames: bp kept, saved, or what the architecture
// has beside that.
Rule RuleOf(uint64_t code) {
  const auto size = kFrameUnit * static_cast<int32_t>(2 + code % 4);
  switch (code / 4 % 3) {
    case 0:
      return TestRule(RuleKind::kSp, size);
    case 1:
      return TestRule(RuleKind::kSp, size, /*saves_bp=*/true);
    default:
#if defined(__x86_64__)  // realigns its stack
      return {.kind = RuleKind::kBpDeref, .cfa_offset = -8, .bp_slot = kBpSlotAtBp};
#else  // has its frame record at the bottom
      return {.kind = RuleKind::kSp,
              .cfa_offset = size,
              .bp_slot = static_cast<uint32_t>(size / 8),
              .return_slot = static_cast<uint32_t>(size / 8) - 1};
#endif
  }
}

class StackMemoTest : public testing::Test {
 protected:
  struct Frame {
    size_t word;   // index of the word at its sp
    uint64_t key;  // where it is executing
    uint64_t bp;   // in it
  };

  void SetUp() override {
    for (uint64_t code = 0; code < kFunctions; ++code)
      writer_.Insert(kMemoCode + code, RuleOf(code));
    writer_.Insert(kEndKey, {.kind = RuleKind::kEnd});
    Restart();
  }

  void Restart() { frames_.assign(1, {.word = kWords - 8, .key = kEndKey, .bp = 0}); }

  void Call(uint64_t code, size_t padding) {
    const Frame caller = frames_.back();
    const Rule rule = RuleOf(code);
    Frame frame{.word = caller.word - static_cast<size_t>(rule.cfa_offset / 8),
                .key = kMemoCode + code,
                .bp = caller.bp};
    if (rule.kind == RuleKind::kBpDeref) {
      // From its sp up: a word, the CFA, the caller's bp (where bp points to), padding.
      frame.word = (caller.word - 6 - padding) / 8 * 8;
      words_[frame.word + 1] = AddressOf(caller.word);
      words_[frame.word + 2] = caller.bp;
      frame.bp = AddressOf(frame.word + 2);
    } else if (rule.bp_slot != 0) {
      words_[caller.word - rule.bp_slot] = caller.bp;
      frame.bp = 0x1000 + code * 8;
    }
    words_[caller.word - SavedPlacesOf(rule).return_slot()] = caller.key;
    frames_.push_back(frame);
  }

  uint64_t AddressOf(size_t word) const {
    return reinterpret_cast<uint64_t>(words_.data() + word);
  }

  std::vector<uint64_t> Walk(StackMemo& memo, WalkResult* result) const {
    const StackBounds bounds{.low = AddressOf(0), .high = AddressOf(kWords)};
    const Frame& inner = frames_.back();
    const Cursor cursor{.key = inner.key, .sp = AddressOf(inner.word), .bp = inner.bp};
    *result = WalkStack(*rules_, cursor, LiveStack(bounds, bounds), memo);
    std::vector<uint64_t> keys;
    for (size_t i = 0; i < memo.frame_count(); ++i)
      keys.push_back(memo.key(i));
    return keys;
  }

  void ExpectAgreement() {
    *fresh_ = {};
    WalkResult expected;
    WalkResult got;
    const std::vector<uint64_t> expected_keys = Walk(*fresh_, &expected);
    const std::vector<uint64_t> keys = Walk(*memo_, &got);
    ASSERT_LE(keys.size(), kMaxFrames);
    ASSERT_EQ(keys, expected_keys);
    ASSERT_EQ(got.end, expected.end);
    ASSERT_EQ(got.hash, expected.hash);
    ASSERT_NO_FATAL_FAILURE(ExpectTheEngineUnderstands(keys, got.hash));
    if (frames_.size() > kMaxFrames) {
      ASSERT_EQ(got.end, WalkEnd::kTooDeep);
      return;
    }
    ASSERT_EQ(got.end, WalkEnd::kComplete);
    ASSERT_EQ(keys.size(), frames_.size());
    for (size_t i = 0; i < keys.size(); ++i)
      ASSERT_EQ(keys[i], frames_[frames_.size() - 1 - i].key);
  }

  // Plays the engine: what it was sent and the inner frames give the whole stack. Every
  // fourth record is lost.
  void ExpectTheEngineUnderstands(const std::vector<uint64_t>& keys, uint64_t hash) {
    const auto outer = sent_.find(memo_->sent_hash());
    ASSERT_NE(outer, sent_.end());
    std::vector<uint64_t> stack = outer->second;  // outermost first
    uint64_t got = outer->first;
    for (size_t i = memo_->unsent_count(); i-- > 0;) {
      stack.push_back(memo_->key(i));
      got = ExtendStackHash(got, memo_->key(i));
    }
    ASSERT_EQ(got, hash);
    ASSERT_TRUE(std::equal(stack.begin(), stack.end(), keys.rbegin(), keys.rend()));
    if (++records_ % 4 == 0)
      return;
    memo_->MarkSent();
    sent_ = {{kEmptyStackHash, {}}};  // a thread refers to its last record at most
    got = kEmptyStackHash;
    for (size_t i = 0; i < stack.size(); ++i) {
      got = ExtendStackHash(got, stack[i]);
      sent_[got].assign(stack.begin(), stack.begin() + static_cast<ptrdiff_t>(i) + 1);
    }
  }

  std::map<uint64_t, std::vector<uint64_t>> sent_ = {{kEmptyStackHash, {}}};
  size_t records_ = 0;
  std::vector<uint64_t> words_ = std::vector<uint64_t>(kWords);
  std::vector<Frame> frames_;
  std::unique_ptr<RuleTable> rules_ = std::make_unique<RuleTable>();
  RuleWriter writer_{rules_.get()};
  std::unique_ptr<StackMemo> memo_ = std::make_unique<StackMemo>();
  std::unique_ptr<StackMemo> fresh_ = std::make_unique<StackMemo>();
};

TEST_F(StackMemoTest, RandomCallsAndReturnsAreWalkedAsWithoutMemory) {
  std::mt19937_64 random(99);
  for (int step = 0; step < 20'000; ++step) {
    const size_t returns = random() % 4 == 0 ? random() % 40 : random() % 3;
    const size_t calls = random() % 4 == 0 ? random() % 41 : random() % 3;
    for (size_t i = 0; i < returns && frames_.size() > 1; ++i)
      frames_.pop_back();
    if (random() % 100 == 0)
      Restart();
    for (size_t i = 0; i < calls && frames_.size() < 600; ++i)
      Call(random() % kFunctions, random() % 3);
    ASSERT_NO_FATAL_FAILURE(ExpectAgreement()) << step;
  }
}

TEST_F(StackMemoTest, AStackThatGrowsBeyondTheMostFramesIsTooDeepAsWithoutMemory) {
  for (const size_t depth : {400u, 511u, 512u, 513u, 700u, 500u, 900u, 1020u, 512u, 300u,
                             1000u, 400u, 800u, 1020u}) {
    while (frames_.size() > depth)
      frames_.pop_back();
    while (frames_.size() < depth)
      Call(frames_.size() % kFunctions, 0);
    ASSERT_NO_FATAL_FAILURE(ExpectAgreement()) << depth;
  }
}

// The same function called twice may realign to the same place from different callers'
// stack pointers: its registers are then equal, its caller's are not.
TEST_F(StackMemoTest, ARealignedFrameIsNotProofOfItsCallersPlace) {
  constexpr uint64_t kRealigned = 8;
  for (const uint64_t caller : {0u, 1u, 2u, 3u, 0u}) {
    Restart();
    Call(0, 0);
    Call(caller, 0);
    Call(kRealigned, 0);
    ASSERT_NO_FATAL_FAILURE(ExpectAgreement()) << caller;
  }
}

TEST_F(StackMemoTest, TheMemoryOfAnotherThreadOrOfOlderRulesIsNotUsed) {
  const ThreadSlot threads[2] = {};
  memo_->PrepareFor(&threads[0], 1);
  for (uint64_t i = 0; i < 20; ++i)
    Call(i % kFunctions, 0);
  ExpectAgreement();
  writer_.Insert(kMemoCode, {.kind = RuleKind::kStop});
  WalkResult result;
  memo_->PrepareFor(&threads[0], 2);
  Walk(*memo_, &result);
  EXPECT_EQ(result.end, WalkEnd::kCut);
  writer_.Insert(kMemoCode, RuleOf(0));
  memo_->PrepareFor(&threads[1], 2);
  ExpectAgreement();
}

}  // namespace
}  // namespace heapprofd
