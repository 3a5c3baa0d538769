#include "engine/idle/idle_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>

#include "engine/idle/fake_page_files.h"
#include "profile/estimate.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kNoLimit = ~uint64_t{0};

// Frames are pages of another number.
uint64_t FrameOf(uint64_t page) {
  return page + 1000;
}

SampledAllocation BlockAt(uint64_t address, uint64_t size, CallsiteId callsite) {
  return {.address = address, .size = size, .interval = 1, .callsite = callsite};
}

class IdleMemoryTest : public ::testing::Test {
 protected:
  IdleMemoryTest() {
    for (uint64_t page = 0; page < 64; ++page)
      files_.Map(page, FrameOf(page));
  }

  using Occasion = IdleMemory::Occasion;

  void LookAt(uint64_t now_ns, Occasion occasion = Occasion::kDump) {
    EXPECT_TRUE(idle_.Look(heap_, occasion, now_ns, kNoLimit));
    files_.TakeMarks();
  }

  double Idle(CallsiteId callsite) const {
    const auto found = idle_.found().callsites.find(callsite);
    return found != idle_.found().callsites.end() ? found->second.bytes : 0;
  }

  FakePageFiles files_;
  LiveHeap heap_{1};
  IdleMemory idle_{files_.Pages(), /*looks_between=*/false, kSecond};
};

TEST_F(IdleMemoryTest, WhatIsNotTouchedBetweenTwoLooksIsIdle) {
  heap_.Allocate(BlockAt(kPageBytes, 2 * kPageBytes, 1), kSecond);
  heap_.Allocate(BlockAt(8 * kPageBytes, kPageBytes, 2), kSecond);
  LookAt(2 * kSecond);
  EXPECT_EQ(idle_.found().since_ns, 0u);
  files_.SetIdle(FrameOf(8), false);  // touched
  LookAt(4 * kSecond);
  EXPECT_EQ(idle_.found().since_ns, 2 * kSecond);
  EXPECT_DOUBLE_EQ(Idle(1), 2.0 * kPageBytes);
  EXPECT_DOUBLE_EQ(Idle(2), 0);
  EXPECT_DOUBLE_EQ(idle_.found().unseen_bytes, 0);
}

// Swapped out, shared or never written; marked by nobody; or more than can be looked at.
TEST_F(IdleMemoryTest, WhatCouldNotBeLookedAtIsTold) {
  heap_.Allocate(BlockAt(kPageBytes, 2 * kPageBytes, 1), kSecond);
  heap_.Allocate(BlockAt(8 * kPageBytes, 100, 2), kSecond);
  heap_.Allocate(BlockAt(70 * kPageBytes, 1000, 3), kSecond);
  files_.MapEntry(2, FrameOf(2) | FakePageFiles::kPresent);
  LookAt(2 * kSecond);
  heap_.Allocate(BlockAt(30 * kPageBytes, 7, 4), kSecond);      // not there in time
  heap_.Allocate(BlockAt(40 * kPageBytes, 7, 5), 3 * kSecond);  // was touched since
  LookAt(4 * kSecond);
  EXPECT_DOUBLE_EQ(idle_.found().unseen_bytes, kPageBytes + 1000 + 7);
  EXPECT_DOUBLE_EQ(Idle(1), kPageBytes);
  EXPECT_DOUBLE_EQ(Idle(2), 100);
  EXPECT_DOUBLE_EQ(Idle(3), 0);
}

TEST_F(IdleMemoryTest, ALookInStepsFindsTheSame) {
  for (uint64_t page = 64; page < 2500; ++page)
    files_.Map(page, FrameOf(page));
  // At the begin of a word of the bitmap: the next step's would replace it in the file.
  heap_.Allocate(BlockAt(24 * kPageBytes, 2000 * kPageBytes, 1), kSecond);
  const auto look_in_steps = [&](uint64_t now_ns) {
    size_t steps = 1;
    while (!idle_.Look(heap_, Occasion::kDump, now_ns, /*end_ns=*/0))
      ++steps;
    files_.TakeMarks();
    return steps;
  };
  EXPECT_GT(look_in_steps(2 * kSecond), 4u);
  EXPECT_GT(idle_.bytes(), 2000 * sizeof(uint64_t));
  EXPECT_LT(idle_.bytes(), IdleMemory::kMaxBytes);  // which a look is charged with
  files_.SetIdle(FrameOf(1000), false);
  look_in_steps(4 * kSecond);
  EXPECT_FALSE(idle_.is_looking());
  EXPECT_DOUBLE_EQ(Idle(1), 1999.0 * kPageBytes);
}

TEST_F(IdleMemoryTest, WhereThereIsNoRoomItIsNotKnownWhatIsIdle) {
  heap_.Allocate(BlockAt(kPageBytes, 100, 1), kSecond);
  LookAt(2 * kSecond);
  LookAt(4 * kSecond);
  EXPECT_NE(idle_.found().since_ns, 0u);
  idle_.Forget();
  EXPECT_TRUE(idle_.found().was_asked_for);
  EXPECT_EQ(idle_.found().since_ns, 0u);
  EXPECT_TRUE(idle_.found().callsites.empty());
}

TEST_F(IdleMemoryTest, ABlockYoungerThanTheMarkIsNotIdle) {
  heap_.Allocate(BlockAt(kPageBytes, 100, 1), kSecond);
  LookAt(2 * kSecond);
  heap_.Allocate(BlockAt(kPageBytes + 200, 100, 2), 3 * kSecond);
  LookAt(4 * kSecond);
  EXPECT_DOUBLE_EQ(Idle(1), 100);
  EXPECT_DOUBLE_EQ(Idle(2), 0);
}

TEST_F(IdleMemoryTest, APageThatSomebodyElseHasMarkedIsNotKnownToBeIdle) {
  heap_.Allocate(BlockAt(kPageBytes, 100, 1), kSecond);
  LookAt(2 * kSecond);
  heap_.Allocate(BlockAt(9 * kPageBytes, 100, 2), kSecond);  // not looked at before
  files_.SetIdle(FrameOf(9), true);
  LookAt(4 * kSecond);
  EXPECT_DOUBLE_EQ(Idle(1), 100);
  EXPECT_DOUBLE_EQ(Idle(2), 0);
}

TEST_F(IdleMemoryTest, ALookOfAMomentAgoDoesNotCount) {
  heap_.Allocate(BlockAt(kPageBytes, 100, 1), kSecond);
  heap_.Allocate(BlockAt(9 * kPageBytes, 100, 2), kSecond);
  LookAt(2 * kSecond);
  files_.SetIdle(FrameOf(9), false);
  heap_.Allocate(BlockAt(20 * kPageBytes, 7, 3), kSecond);  // not there in time
  LookAt(10 * kSecond);
  LookAt(10 * kSecond + 1'000'000);
  EXPECT_EQ(idle_.found().since_ns, 2 * kSecond);
  EXPECT_DOUBLE_EQ(Idle(1), 100);
  EXPECT_DOUBLE_EQ(Idle(2), 0);
  EXPECT_DOUBLE_EQ(Idle(3), 0);
  EXPECT_DOUBLE_EQ(idle_.found().unseen_bytes, 7);  // what was touched was seen
}

TEST_F(IdleMemoryTest, AProcessThatIsGoneLeavesWhatWasFound) {
  heap_.Allocate(BlockAt(kPageBytes, 100, 1), kSecond);
  LookAt(2 * kSecond);
  LookAt(4 * kSecond);
  files_.End();
  LookAt(9 * kSecond);
  EXPECT_EQ(idle_.found().since_ns, 2 * kSecond);
  EXPECT_EQ(idle_.found().until_ns, 4 * kSecond);
  EXPECT_DOUBLE_EQ(Idle(1), 100);
}

TEST_F(IdleMemoryTest, AProcessWithoutAPageOfItsOwnIsUnseen) {
  heap_.Allocate(BlockAt(kPageBytes, 100, 1), kSecond);
  LookAt(2 * kSecond);
  LookAt(4 * kSecond);
  files_.MapEntry(1, FrameOf(1) | FakePageFiles::kPresent);  // a child has it, too
  LookAt(9 * kSecond);
  EXPECT_EQ(idle_.found().until_ns, 9 * kSecond);
  EXPECT_DOUBLE_EQ(Idle(1), 0);
  EXPECT_DOUBLE_EQ(idle_.found().unseen_bytes, 100);
}

// The figure would be of a moment, and the older marks be lost.
TEST_F(IdleMemoryTest, AMarkThatIsYoungStays) {
  heap_.Allocate(BlockAt(kPageBytes, 100, 1), kSecond);
  LookAt(2 * kSecond);
  for (uint64_t i = 1; i <= 5; ++i) {
    LookAt(2 * kSecond + i * 1'000'000);
    EXPECT_EQ(idle_.found().since_ns, 2 * kSecond);
  }
  files_.SetIdle(FrameOf(1), false);
  LookAt(2 * kSecond + 6'000'000);
  EXPECT_DOUBLE_EQ(Idle(1), 0);
}

TEST_F(IdleMemoryTest, AtTheEndNothingIsMarked) {
  heap_.Allocate(BlockAt(kPageBytes, 100, 1), kSecond);
  LookAt(2 * kSecond, Occasion::kEnd);  // there is nothing to find either
  EXPECT_FALSE(files_.IsIdle(FrameOf(1)));
  LookAt(3 * kSecond);
  files_.SetIdle(FrameOf(1), false);
  LookAt(9 * kSecond, Occasion::kEnd);
  EXPECT_EQ(idle_.found().until_ns, 9 * kSecond);
  EXPECT_FALSE(files_.IsIdle(FrameOf(1)));
}

// Else the dump would begin another one, and that again.
TEST_F(IdleMemoryTest, ALookThatADumpGoesOnWithIsLeftToIt) {
  IdleMemory between(files_.Pages(), /*looks_between=*/true, kSecond);
  for (uint64_t page = 64; page < 2500; ++page)
    files_.Map(page, FrameOf(page));
  heap_.Allocate(BlockAt(24 * kPageBytes, 2000 * kPageBytes, 1), kSecond);
  const uint64_t now_ns = 3 * kSecond;
  ASSERT_TRUE(between.IsDue(now_ns));
  ASSERT_FALSE(between.Look(heap_, Occasion::kBetween, now_ns, /*end_ns=*/0));
  EXPECT_TRUE(between.IsDue(now_ns));
  ASSERT_FALSE(between.Look(heap_, Occasion::kDump, now_ns, /*end_ns=*/0));
  EXPECT_FALSE(between.IsDue(now_ns));
  ASSERT_TRUE(between.Look(heap_, Occasion::kDump, now_ns, kNoLimit));
  EXPECT_FALSE(between.IsDue(now_ns));
  EXPECT_FALSE(between.Look(heap_, Occasion::kDump, now_ns, /*end_ns=*/0));
  between.Drop();
  EXPECT_FALSE(between.is_looking());
}

TEST_F(IdleMemoryTest, ABlockThatEndsBeyondAllAddressesIsBounded) {
  heap_.Allocate(BlockAt(~uint64_t{0} - 10, uint64_t{1} << 56, 1), kSecond);
  heap_.Allocate(BlockAt(kPageBytes, 100, 2), kSecond);
  LookAt(2 * kSecond);
  LookAt(4 * kSecond);
  EXPECT_DOUBLE_EQ(Idle(2), 100);
}

TEST_F(IdleMemoryTest, BetweenDumpsItIsLookedAtAfterTwiceTheTime) {
  IdleMemory between(files_.Pages(), /*looks_between=*/true, kSecond);
  heap_.Allocate(BlockAt(kPageBytes, 100, 1), kSecond + 1);
  const auto marks_at = [&](uint64_t now_ns) {
    files_.SetIdle(FrameOf(1), false);
    if (between.IsDue(now_ns))
      static_cast<void>(between.Look(heap_, Occasion::kBetween, now_ns, kNoLimit));
    files_.TakeMarks();
    return files_.IsIdle(FrameOf(1));
  };
  EXPECT_FALSE(marks_at(kSecond + kSecond / 2));
  EXPECT_TRUE(marks_at(2 * kSecond));
  EXPECT_FALSE(marks_at(2 * kSecond + kSecond / 2));
  EXPECT_TRUE(marks_at(3 * kSecond));
  EXPECT_FALSE(marks_at(4 * kSecond));
  EXPECT_TRUE(marks_at(5 * kSecond));
}

// Against a model that knows of each page when it was touched last.
class IdleModel {
 public:
  void Allocate(const SampledAllocation& block, uint64_t now_ns) {
    blocks_[block.address] = {block, now_ns};
  }

  // Of the lowest block.
  uint64_t Free() {
    const uint64_t address = blocks_.begin()->first;
    blocks_.erase(blocks_.begin());
    return address;
  }

  void Touch(uint64_t page, uint64_t now_ns) { touched_[page] = now_ns; }

  bool has_blocks() const { return !blocks_.empty(); }

  bool IsTaken(uint64_t address, uint64_t size) const {
    const auto after = blocks_.lower_bound(address + size);
    if (after == blocks_.begin())
      return false;
    const SampledAllocation& before = std::prev(after)->second.first;
    return before.address + before.size > address;
  }

  struct Found {
    bool is_by_last = true;
    uint64_t since_ns = 0;
    double unseen_bytes = 0;
    std::map<CallsiteId, double> idle;
  };

  Found Look(uint64_t now_ns) {
    const bool by_last =
        before_ns_ == 0 || (now_ns - last_ns_) * 4 >= now_ns - before_ns_;
    Found found{
        .is_by_last = by_last, .since_ns = by_last ? last_ns_ : before_ns_, .idle = {}};
    std::set<uint64_t> marked;
    for (const auto& [address, entry] : blocks_) {
      const auto& [block, born] = entry;
      const double weight = EstimateOfSample(block.size, block.interval).bytes /
                            static_cast<double>(block.size);
      for (uint64_t i = 0; i < block.size; ++i) {
        const uint64_t page = (address + i) / kPageBytes;
        const bool is_there = page < 64;
        if (is_there)
          marked.insert(page);
        if (last_ns_ == 0 || born >= found.since_ns)
          continue;
        const bool is_known = is_there && last_marked_.contains(page) &&
                              (by_last || before_marked_.contains(page));
        if (!is_known)
          found.unseen_bytes += weight;
        else if (touched_[page] <= found.since_ns)
          found.idle[block.callsite] += weight;
      }
    }
    if (last_ns_ == 0 || now_ns - last_ns_ >= kSecond) {
      before_marked_ = std::exchange(last_marked_, marked);
      before_ns_ = std::exchange(last_ns_, now_ns);
    }
    return found;
  }

 private:
  std::map<uint64_t, std::pair<SampledAllocation, uint64_t>> blocks_;  // and when born
  std::map<uint64_t, uint64_t> touched_;
  std::set<uint64_t> last_marked_;
  std::set<uint64_t> before_marked_;
  uint64_t last_ns_ = 0;
  uint64_t before_ns_ = 0;
};

TEST_F(IdleMemoryTest, AnyHistoryIsAsANaiveModelTellsIt) {
  std::mt19937_64 random(301);
  IdleModel model;
  uint64_t now = kSecond;
  constexpr uint64_t kMaxSize = 3 * kPageBytes;
  size_t looks_by_before = 0;
  for (int step = 0; step < 3000; ++step) {
    now += kSecond / 20;
    const uint64_t page = random() % 60 + 1;
    const uint64_t address = page * kPageBytes + random() % kPageBytes;
    if (random() % 4 == 0 && !model.IsTaken(address, kMaxSize)) {
      const SampledAllocation block{.address = address,
                                    .size = random() % kMaxSize + 1,
                                    .interval = random() % 8000 + 1,
                                    .callsite = static_cast<CallsiteId>(random() % 5)};
      heap_.Allocate(block, now);
      model.Allocate(block, now);
    } else if (random() % 4 == 0 && model.has_blocks()) {
      heap_.Free(model.Free());
    }
    model.Touch(page, now);
    files_.SetIdle(FrameOf(page), false);
    if (random() % 40 != 0)
      continue;
    now += kSecond / 100;
    LookAt(now);
    const IdleModel::Found want = model.Look(now);
    looks_by_before += want.is_by_last ? 0 : 1;
    ASSERT_EQ(idle_.found().since_ns, want.since_ns) << step;
    EXPECT_NEAR(idle_.found().unseen_bytes, want.unseen_bytes,
                1e-6 * (want.unseen_bytes + 1))
        << step;
    for (CallsiteId callsite = 0; callsite < 5; ++callsite) {
      const auto found = want.idle.find(callsite);
      const double bytes = found != want.idle.end() ? found->second : 0;
      EXPECT_NEAR(Idle(callsite), bytes, 1e-6 * (bytes + 1)) << step;
    }
  }
  EXPECT_GT(looks_by_before, 0u);
}

}  // namespace
}  // namespace heapprofd
