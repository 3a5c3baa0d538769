// Many threads that wait for space in a small ring; the test is the engine. The session
// is the test's own, too.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "client/engine_link/space_wait.h"
#include "client/session.h"
#include "wire/test_ring.h"

namespace heapprofd {

ClientSession g_session;

namespace {

constexpr uint64_t kRingSize = 8192;
constexpr uint64_t kBeatEvery = 64;  // records

class SpaceWaitTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_.engine = engine_.get();
    memory_.client = client_.get();
    memory_.ring = RingWriter(&client_->ring, ring_.bytes(), kRingSize);
    engine_->control.active.store(1);
    engine_->control.when_full.store(static_cast<uint32_t>(WhenFull::kBlock));
    Beat();
    g_session.memory.store(&memory_);
  }

  void TearDown() override { g_session.memory.store(nullptr); }

  // Beats are times: none is like another.
  void Beat() {
    static std::atomic<uint64_t> beat = 0;
    engine_->control.heartbeat.store(++beat);
  }

  // As a hook writes. False: it was in vain.
  static bool Write(uint64_t value, size_t words) {
    RingWriter& ring = g_session.ring();
    RingWriter::Reservation reservation = ring.Reserve(RecordType::kFree, words * 8);
    if (reservation.payload == nullptr) {
      SpaceWait wait(Part::kOnly);
      while (reservation.payload == nullptr && wait.ForSpace(words * 8))
        reservation = ring.Reserve(RecordType::kFree, words * 8);
    }
    if (reservation.payload == nullptr)
      return false;
    for (size_t i = 0; i < words; ++i)
      memcpy(reservation.payload + 8 * i, &value, sizeof(value));
    ring.Commit(reservation);
    return true;
  }

  static void Fill() {
    while (g_session.ring().HasSpace(8))
      ASSERT_TRUE(Write(0, 1));
  }

  TestRing ring_{kRingSize};
  std::unique_ptr<EngineBlock> engine_ = std::make_unique<EngineBlock>();
  std::unique_ptr<ClientBlock> client_ = std::make_unique<ClientBlock>();
  RingReader reader_{&client_->ring, ring_.bytes(), kRingSize};
  SessionMemory memory_{};
};

TEST_F(SpaceWaitTest, NobodyIsForgottenAndNothingIsLost) {
  constexpr uint64_t kThreads = 100;
  constexpr uint64_t kRecords = 200;  // per thread
  std::atomic<uint64_t> lost = 0;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&lost, thread] {
      // Some as large as the ring takes.
      for (uint64_t i = 0; i < kRecords; ++i)
        lost += Write(thread, i % 50 == 49 ? kRingSize / 16 - 1 : 1 + i % 20) ? 0u : 1u;
    });
  }
  std::vector<uint64_t> received(kThreads);
  for (uint64_t count = 0; count < kThreads * kRecords && lost == 0;) {
    RingReader::Record record;
    if (reader_.Read(&record, false) == RingReader::Outcome::kEmpty) {
      Beat();
      reader_.WakeForFreeSpace();
      std::this_thread::yield();
      continue;
    }
    uint64_t thread = 0;
    ASSERT_GE(record.payload.size(), sizeof(thread));
    memcpy(&thread, record.payload.data(), sizeof(thread));
    ASSERT_LT(thread, kThreads);
    ++received[thread];
    // The engine's steps.
    if (reader_.position() - reader_.released() >= kRingSize / 16)
      reader_.ReleaseSpace();
    if (++count % kBeatEvery == 0)
      Beat();
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(lost, 0u);
  EXPECT_EQ(received, std::vector<uint64_t>(kThreads, kRecords));
  EXPECT_EQ(client_->ring.waiters.load(), 0u);
}

TEST_F(SpaceWaitTest, AWaitEndsAtItsLimitThoughTheEngineMoves) {
  constexpr uint64_t kLimitUs = 20'000;
  engine_->control.block_timeout_us.store(kLimitUs);
  Fill();
  std::atomic<bool> is_over = false;
  std::thread engine([this, &is_over] {
    while (!is_over) {
      Beat();
      std::this_thread::yield();
    }
  });
  const uint64_t begin = EngineWaitClockNs();
  EXPECT_FALSE(Write(1, 1));
  EXPECT_GE(EngineWaitClockNs() - begin, kLimitUs * 1000);
  is_over = true;
  engine.join();
  EXPECT_EQ(client_->ring.client_error.load(),
            static_cast<uint32_t>(ClientError::kBlockTimeout));
}

TEST_F(SpaceWaitTest, NoSpaceComesToWhoeverWaitsWhenTheSessionEnds) {
  Fill();
  std::atomic<uint64_t> written = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i)
    threads.emplace_back([&written] { written += Write(1, 1) ? 1u : 0u; });
  engine_->control.active.store(0);
  reader_.WakeAll();
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(written, 0u);
}

TEST_F(SpaceWaitTest, ASessionThatDropsOrARecordThatNeverFitsDoesNotWait) {
  EXPECT_FALSE(SpaceWait(Part::kOnly).ForSpace(kRingSize / 2));
  Fill();
  engine_->control.when_full.store(static_cast<uint32_t>(WhenFull::kDrop));
  EXPECT_FALSE(Write(1, 1));
  EXPECT_EQ(client_->ring.client_error.load(), static_cast<uint32_t>(ClientError::kNone));
}

}  // namespace
}  // namespace heapprofd
