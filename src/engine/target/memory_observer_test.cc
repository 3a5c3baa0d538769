#include "engine/target/memory_observer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace heapprofd {
namespace {

constexpr uint64_t kObservedRingSize = 64 * 1024;

class MemoryObserverTest : public testing::Test {
 protected:
  MemoryObserverTest()
      : memory_(SharedMemory::Create(kObservedRingSize).value()),
        observer_(getpid(), memory_.get(), &seen_) {}

  // As the client does.
  void Answer(uint32_t question, AllocatorKind kind = AllocatorKind::kGlibc) {
    AllocatorReport& report = memory_->client().ring.allocator;
    report.kind.store(static_cast<uint32_t>(kind));
    report.system.store(300);
    report.in_use.store(200);
    report.free.store(100);
    report.answered.store(question);
  }

  MemoryContext seen_;
  std::unique_ptr<SharedMemory> memory_;
  MemoryObserver observer_;
};

TEST_F(MemoryObserverTest, TheKernelsFiguresStandBesideOurEstimate) {
  observer_.Read(1234);
  EXPECT_GT(seen_.rss_kib, 0u);
  EXPECT_GT(seen_.pss_kib, 0u);
  EXPECT_EQ(seen_.requested, 1234);
  EXPECT_EQ(seen_.allocator, "");
  observer_.Look(99, 0);
  EXPECT_GT(seen_.rss_kib, 0u);
  EXPECT_EQ(seen_.requested, 99);
}

TEST_F(MemoryObserverTest, OnlyTheAnswerToTheLastQuestionCounts) {
  observer_.Ask();
  observer_.Ask();
  EXPECT_EQ(memory_->engine().control.allocator_question.load(), 2u);
  EXPECT_FALSE(observer_.HasAnswer());
  Answer(1);
  EXPECT_FALSE(observer_.HasAnswer());
  observer_.Read(0);
  EXPECT_EQ(seen_.allocator, "");
  Answer(2);
  EXPECT_TRUE(observer_.HasAnswer());
  observer_.Read(0);
  EXPECT_EQ(seen_.allocator, "glibc");
  EXPECT_EQ(seen_.allocator_system, 300u);
  EXPECT_EQ(seen_.allocator_in_use, 200u);
  EXPECT_EQ(seen_.allocator_free, 100u);
}

TEST_F(MemoryObserverTest, AProgramThatEndsAnswersWithoutAQuestion) {
  Answer(kQuestionAtExit, AllocatorKind::kJemalloc);
  observer_.Read(0);
  EXPECT_EQ(seen_.allocator, "jemalloc");
}

TEST_F(MemoryObserverTest, AnAnswerOfNoKnownAllocatorIsNone) {
  Answer(kQuestionAtExit, static_cast<AllocatorKind>(77));
  observer_.Read(0);
  EXPECT_EQ(seen_.allocator, "");
}

TEST_F(MemoryObserverTest, WhatTheAllocatorSaidIsNotMixedWithLaterFigures) {
  Answer(kQuestionAtExit);
  observer_.Read(1234);
  observer_.Look(99, 0);
  EXPECT_EQ(seen_.requested, 1234);
}

TEST_F(MemoryObserverTest, OfAProcessThatIsGoneWhatWasSeenLastStands) {
  seen_.rss_kib = 7;
  MemoryObserver gone(0x7fffffff, memory_.get(), &seen_);
  gone.Read(1);
  gone.Look(1, 0);
  EXPECT_EQ(seen_.rss_kib, 7u);
  EXPECT_EQ(seen_.requested, 0);
}

TEST_F(MemoryObserverTest, LooksAreFewAndNoneOfThemIsOld) {
  constexpr uint64_t kMs = 1'000'000;
  constexpr uint64_t kStart = 777 * kMs;
  size_t looks = 0;
  double seen = -1;
  for (uint64_t age = 0; age < 2000 * kMs; age += 5 * kMs) {
    observer_.Look(static_cast<double>(age), kStart + age);
    looks += seen != seen_.requested;
    seen = seen_.requested;
    EXPECT_LE(static_cast<double>(age) - seen,
              std::min(static_cast<double>(age) / 8, 100.0 * kMs));
  }
  EXPECT_LE(looks, 50u);  // of 400 calls
}

}  // namespace
}  // namespace heapprofd
