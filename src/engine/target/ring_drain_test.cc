// Rings that are read in turns, by a sink that looks at nothing but the order.
#include "engine/target/ring_drain.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "wire/ring_writer.h"

namespace heapprofd {
namespace {

constexpr size_t kAll = 1'000'000;

// Each record is one number; 0 is a damaged one.
class Numbers {
 public:
  bool Handle(const RingReader::Record& record) {
    uint64_t number = 0;
    memcpy(&number, record.payload.data(), sizeof(number));
    seen.push_back(number);
    dear += number == dear_number ? 1u : 0u;
    return number != 0;
  }

  void Prefetch(RecordType /*type*/, std::span<const uint64_t> words) {
    ahead += words.size();
  }

  uint64_t dear_steps() const { return dear; }

  std::vector<uint64_t> seen;
  uint64_t dear_number = UINT64_MAX;
  uint64_t dear = 0;
  size_t ahead = 0;
};

class RingDrainTest : public testing::Test {
 protected:
  RingDrainTest()
      : memory_(SharedMemory::Create(64 * 1024).value()),
        writer_(&memory_->client().ring,
                const_cast<std::byte*>(memory_->ring()),
                memory_->ring_size()),
        drain_(memory_.get(), getpid(), &clock_) {
    clock_.Update();
  }

  RingWriter::Reservation Reserve() {
    return writer_.Reserve(RecordType::kSample, sizeof(uint64_t));
  }

  void Write(uint64_t number) {
    const auto reservation = Reserve();
    ASSERT_NE(reservation.payload, nullptr);
    memcpy(reservation.payload, &number, sizeof(number));
    writer_.Commit(reservation);
  }

  size_t Read(size_t max_records, bool writers_gone, uint64_t turn_end_ns = UINT64_MAX) {
    return drain_.Read(numbers_, max_records, writers_gone, turn_end_ns);
  }

  TscClock clock_;
  std::unique_ptr<SharedMemory> memory_;
  RingWriter writer_;
  RingDrain drain_;
  Numbers numbers_;
};

TEST_F(RingDrainTest, RecordsComeInOrderAndAsManyAsAskedFor) {
  for (uint64_t i = 1; i <= 5; ++i)
    Write(i);
  EXPECT_GT(drain_.fill(), 0);
  EXPECT_EQ(Read(3, /*writers_gone=*/false), 3u);
  EXPECT_TRUE(drain_.is_behind());
  EXPECT_EQ(Read(kAll, /*writers_gone=*/false), 2u);
  EXPECT_FALSE(drain_.is_behind());
  EXPECT_EQ(numbers_.seen, (std::vector<uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_GT(numbers_.ahead, 0u);
  EXPECT_EQ(drain_.fill(), 0);
  EXPECT_EQ(Read(kAll, /*writers_gone=*/false), 0u);
}

TEST_F(RingDrainTest, ADearRecordEndsATurnWhoseTimeIsUp) {
  numbers_.dear_number = 2;
  for (uint64_t i = 1; i <= 5; ++i)
    Write(i);
  EXPECT_EQ(Read(kAll, /*writers_gone=*/false, /*turn_end_ns=*/0), 2u);
  EXPECT_TRUE(drain_.is_behind());
}

// The others are so cheap that the clock is not looked at for each.
TEST_F(RingDrainTest, ATurnWhoseTimeIsUpEndsAfterAFewRecords) {
  for (uint64_t i = 1; i <= 100; ++i)
    Write(i);
  EXPECT_EQ(Read(kAll, /*writers_gone=*/false, /*turn_end_ns=*/0), 16u);
}

TEST_F(RingDrainTest, SpaceGoesBackToTheWriters) {
  const uint64_t size = memory_->ring_size();
  for (uint64_t i = 1; drain_.position() < 3 * size; ++i) {
    ASSERT_NO_FATAL_FAILURE(Write(i));
    if (i % 100 == 0)
      Read(kAll, /*writers_gone=*/false);
  }
  EXPECT_EQ(drain_.RestEnd(), drain_.position() + size);
}

TEST_F(RingDrainTest, WhatIsPendingIsWaitedForAsLongAsThereAreWriters) {
  const auto reservation = Reserve();
  Write(2);
  EXPECT_EQ(Read(kAll, /*writers_gone=*/false), 0u);
  const uint64_t one = 1;
  memcpy(reservation.payload, &one, sizeof(one));
  writer_.Commit(reservation);
  EXPECT_EQ(Read(kAll, /*writers_gone=*/false), 2u);
  EXPECT_EQ(numbers_.seen, (std::vector<uint64_t>{1, 2}));
}

TEST_F(RingDrainTest, WhatThreadsLeftHalfWrittenAtTheirEndIsNoDamage) {
  for (uint64_t i = 1; i <= 3; ++i) {
    Reserve();
    Write(i);
  }
  Write(0);
  while (Read(kAll, /*writers_gone=*/true) > 0) {
  }
  Quality quality;
  drain_.CountDamage(/*threads=*/2, &quality);
  EXPECT_EQ(quality.cut_records, 2u);
  EXPECT_EQ(quality.corrupt_records, 1u + 1u);  // the third of these, and the damaged one
  EXPECT_EQ(numbers_.seen, (std::vector<uint64_t>{1, 2, 3, 0}));
}

TEST_F(RingDrainTest, WhatIsGivenUpIsCounted) {
  for (uint64_t i = 1; i <= 5; ++i)
    Write(i);
  Read(2, /*writers_gone=*/true);
  drain_.Lose(/*writers_gone=*/true);
  EXPECT_EQ(drain_.unread_records(), 3u);
  EXPECT_EQ(Read(kAll, /*writers_gone=*/true), 0u);
}

}  // namespace
}  // namespace heapprofd
