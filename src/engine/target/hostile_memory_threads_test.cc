// Another thread writes random words into both blocks, as a hostile target would that had
// mapped them, while the engine reads the ring, publishes rules, looks at everything and
// dumps. Nothing that is read there may lead the engine out of its own memory.
//
// The other thread has the client's block at addresses of its own, as a process has it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>

#include "engine/target/published_config.h"
#include "engine/target/test_target.h"
#include "walk/rule_writer.h"

namespace heapprofd {
namespace {

using Words = std::atomic<uint64_t>;

Words* WordsAt(void* memory) {
  return static_cast<Words*>(memory);
}

// Numbers near which bounds lie, and others.
uint64_t HostileNumber(std::mt19937_64& random) {
  const uint64_t number = random();
  switch (number % 5) {
    case 0:
      return number >> 8 & 0xff;
    case 1:
      return uint64_t{1} << (number >> 8 & 63);
    case 2:
      return ~(number >> 8 & 0xffff);
    default:
      return number;
  }
}

class HostileWriter {
 public:
  explicit HostileWriter(SharedMemory* memory)
      : engine_(WordsAt(&memory->engine())),
        client_size_(kRingOffset + memory->ring_size()),
        client_(mmap(nullptr,
                     client_size_,
                     PROT_READ | PROT_WRITE,
                     MAP_SHARED,
                     memory->client_fd(),
                     0)) {
    EXPECT_NE(client_, MAP_FAILED);
    writer_ = std::thread([this] { Write(); });
  }

  ~HostileWriter() {
    is_over_ = true;
    writer_.join();
    munmap(client_, client_size_);
  }

  HostileWriter(const HostileWriter&) = delete;
  HostileWriter& operator=(const HostileWriter&) = delete;

 private:
  // The mutex is not among what a target can write: wire/memory_files.cc.
  static bool IsOfLock(size_t word) {
    constexpr size_t kBegin = offsetof(SessionControl, engine_lock) / 8;
    return word >= kBegin && word < kBegin + sizeof(SessionControl::engine_lock) / 8;
  }

  void Write() {
    std::mt19937_64 random(1);
    constexpr size_t kHeader = offsetof(ClientBlock, ring) / 8;
    constexpr size_t kHeaderWords = sizeof(RingHeader) / 8;
    while (!is_over_) {
      const size_t word = random() % (sizeof(EngineBlock) / 8);
      if (!IsOfLock(word))
        engine_[word].store(HostileNumber(random), std::memory_order_relaxed);
      WordsAt(&rules().rules)->store(random(), std::memory_order_relaxed);
      Words* const client = WordsAt(client_);
      client[random() % (client_size_ / 8)].store(HostileNumber(random));
      client[kHeader + random() % kHeaderWords].store(HostileNumber(random));
    }
  }

  EngineBlock& rules() const { return *reinterpret_cast<EngineBlock*>(engine_); }

  Words* engine_;
  size_t client_size_;
  void* client_;
  std::atomic<bool> is_over_{false};
  std::thread writer_;
};

TEST(HostileMemoryThreadsTest, WhateverIsWrittenThereTheEngineStaysInItsOwnMemory) {
  constexpr int kRounds = 300;
  SessionConfig config;
  config.when_full = WhenFull::kDrop;
  config.adaptive_threshold_bytes = 4096;
  TestTarget target(config);
  TargetRecorder& recorder = target.target().recorder();
  RuleWriter rules(&target.memory().engine().rules);
  std::mt19937_64 random(2);
  const HostileWriter hostile(&target.memory());
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 200; ++i)
      rules.Insert(random() % kMaxKey, {.kind = RuleKind::kEnd});
    target.clock().Update();
    recorder.Drain(/*max_records=*/1000, round % 2 == 0);
    recorder.UpdateDump();
    recorder.ReadMemory();
    recorder.Tick(MonotonicNs());
    EXPECT_LE(target.target().lost_records(), uint64_t{1} << 54);
  }
}

}  // namespace
}  // namespace heapprofd
