#include "engine/target/memory_observer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
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

// A child that stops, and becomes another program when it goes on.
class BecomingProcess {
 public:
  BecomingProcess() : pid_(fork()) {
    if (pid_ == 0) {
      raise(SIGSTOP);
      execl("/bin/sh", "sh", "-c", "kill -STOP $$", nullptr);
      _exit(127);
    }
    WaitForStop();
  }

  ~BecomingProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }

  void BecomeAnother() const {
    kill(pid_, SIGCONT);
    WaitForStop();
  }

 private:
  void WaitForStop() const {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
    EXPECT_TRUE(WIFSTOPPED(status));
  }

  pid_t pid_;
};

TEST_F(MemoryObserverTest, OfAProcessThatHasBecomeAnotherProgramWhatWasSeenLastStands) {
  const BecomingProcess process;
  MemoryObserver observer(process.pid(), memory_.get(), &seen_);
  observer.Look(1, 0);
  const uint64_t before = seen_.rss_kib;
  EXPECT_GT(before, 0u);
  process.BecomeAnother();
  observer.Read(2);
  observer.Look(3, 1'000'000'000);
  EXPECT_EQ(seen_.rss_kib, before);
  EXPECT_EQ(seen_.requested, 1);
}

// By what may be read of a process that hangs in an exec, without waiting for it.
TEST(MemoryImageTest, TheNextOneHasOtherCodeOrWasNeverAsLarge) {
  const MemoryImage space{.code_kib = 10, .peak_kib = 500};
  EXPECT_TRUE(space.MayBecome({.code_kib = 10, .peak_kib = 500}));
  EXPECT_TRUE(space.MayBecome({.code_kib = 10, .peak_kib = 501}));
  EXPECT_FALSE(space.MayBecome({.code_kib = 10, .peak_kib = 499}));
  EXPECT_FALSE(space.MayBecome({.code_kib = 11, .peak_kib = 500}));
  EXPECT_FALSE(space.MayBecome({}));
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
