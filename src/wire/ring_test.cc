// The ring with one writer and one reader: against a std::deque, when it is full, and
// when the writer lies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "wire/test_ring.h"

namespace heapprofd {
namespace {

using Outcome = RingReader::Outcome;

constexpr uint64_t kSize = 8192;

class RingTest : public testing::Test {
 protected:
  // One committed record whose payload is `words` times `value`; false: no space.
  bool Write(size_t words, uint64_t value, RecordType type = RecordType::kFree) {
    const RingWriter::Reservation reservation = writer_.Reserve(type, words * 8);
    if (reservation.payload == nullptr)
      return false;
    Fill(reservation, words, value);
    writer_.Commit(reservation);
    return true;
  }

  static void Fill(const RingWriter::Reservation& reservation,
                   size_t words,
                   uint64_t value) {
    for (size_t i = 0; i < words; ++i)
      memcpy(reservation.payload + 8 * i, &value, sizeof(value));
  }

  static std::vector<uint64_t> WordsOf(const RingReader::Record& record) {
    std::vector<uint64_t> words(record.payload.size() / 8);
    if (!words.empty())
      memcpy(words.data(), record.payload.data(), record.payload.size());
    return words;
  }

  void ExpectNext(size_t words, uint64_t value) {
    RingReader::Record record;
    ASSERT_EQ(reader_.Read(&record, false), Outcome::kRecord);
    EXPECT_EQ(WordsOf(record), std::vector<uint64_t>(words, value));
  }

  void ExpectEmpty(bool writers_gone = false) {
    RingReader::Record record;
    EXPECT_EQ(reader_.Read(&record, writers_gone), Outcome::kEmpty);
  }

  uint64_t* WordAt(uint64_t position) {
    return reinterpret_cast<uint64_t*>(ring_.bytes() + position % kSize);
  }

  TestRing ring_{kSize};
  RingWriter writer_ = ring_.Writer();
  RingReader reader_ = ring_.Reader();
};

TEST_F(RingTest, AnEmptyRingHasNothingToRead) {
  ExpectEmpty();
  ExpectEmpty(/*writers_gone=*/true);
  EXPECT_EQ(reader_.pending_bytes(), 0u);
  EXPECT_EQ(reader_.corrupt_records(), 0u);
}

TEST_F(RingTest, RecordsThatAreReadSoonAreSeenOnceBefore) {
  std::vector<uint64_t> seen;
  const auto look = [&seen](RecordType type, std::span<const uint64_t> words) {
    EXPECT_EQ(type, RecordType::kFree);
    ASSERT_EQ(words.size(), std::min<size_t>(1 + words[0] % 6, RingReader::kWordsAhead));
    seen.push_back(words.back());
  };
  uint64_t written = 0;
  for (int lap = 0; lap < 40; ++lap) {
    const uint64_t first = written;
    for (; written < first + 90; ++written)
      ASSERT_TRUE(Write(1 + written % 6, written));
    for (uint64_t i = first; i < written; ++i) {
      ExpectNext(1 + i % 6, i);
      reader_.LookAhead(look);
    }
    reader_.ReleaseSpace();
  }
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), written - 40);  // all but the first of each lap
}

TEST_F(RingTest, NothingIsSeenOfRecordsThatAreNotComplete) {
  const auto look = [](RecordType, std::span<const uint64_t>) { FAIL(); };
  ASSERT_TRUE(Write(3, 1));
  const RingWriter::Reservation open = writer_.Reserve(RecordType::kFree, 64);
  ASSERT_NE(open.payload, nullptr);
  ASSERT_TRUE(Write(3, 3));  // behind it
  ExpectNext(3, 1);
  reader_.LookAhead(look);
}

TEST_F(RingTest, RecordsComeOutInTheOrderOfTheirReservation) {
  ASSERT_TRUE(Write(3, 7, RecordType::kSample));
  ASSERT_TRUE(Write(0, 0, RecordType::kModulesChanged));
  RingReader::Record record;
  ASSERT_EQ(reader_.Read(&record, false), Outcome::kRecord);
  EXPECT_EQ(record.type, RecordType::kSample);
  EXPECT_EQ(WordsOf(record), std::vector<uint64_t>(3, 7));
  ASSERT_EQ(reader_.Read(&record, false), Outcome::kRecord);
  EXPECT_EQ(record.type, RecordType::kModulesChanged);
  EXPECT_TRUE(record.payload.empty());
  ExpectEmpty();
}

TEST_F(RingTest, ALaterRecordWaitsForAnEarlierOneThatIsNotCommitted) {
  const auto first = writer_.Reserve(RecordType::kFree, 16);
  ASSERT_TRUE(Write(1, 2));
  ExpectEmpty();
  Fill(first, 2, 1);
  writer_.Commit(first);
  ExpectNext(2, 1);
  ExpectNext(1, 2);
}

TEST_F(RingTest, RandomUseBehavesLikeADeque) {
  struct Expected {
    size_t words;
    uint64_t value;
    RingWriter::Reservation reservation;
    bool is_committed;
  };

  std::deque<Expected> model;
  uint64_t written = 0;
  uint64_t read = 0;
  uint64_t released = 0;
  std::mt19937_64 random(42);
  for (uint64_t step = 0; step < 400'000; ++step) {
    const uint64_t action = random() % 8;
    if (action < 3) {
      // Small records mostly; some about the largest that fits half the ring.
      const size_t words = random() % 20 != 0 ? random() % 40 : random() % (kSize / 8);
      const uint64_t total = 8 + words * 8;
      const auto reservation = writer_.Reserve(RecordType::kSample, words * 8);
      const bool fits = total <= kSize / 2 && written - released + total <= kSize;
      ASSERT_EQ(reservation.payload != nullptr, fits) << step;
      if (fits) {
        written += total;
        Fill(reservation, words, step);
        model.push_back({words, step, reservation, false});
      }
    } else if (action < 6 && !model.empty()) {
      Expected& chosen = model[random() % std::min<size_t>(model.size(), 3)];
      if (!chosen.is_committed)
        writer_.Commit(chosen.reservation);
      chosen.is_committed = true;
    } else if (action == 6) {
      RingReader::Record record;
      const Outcome outcome = reader_.Read(&record, false);
      const bool is_ready = !model.empty() && model.front().is_committed;
      ASSERT_EQ(outcome, is_ready ? Outcome::kRecord : Outcome::kEmpty) << step;
      if (is_ready) {
        ASSERT_EQ(WordsOf(record),
                  std::vector<uint64_t>(model.front().words, model.front().value));
        read += 8 + 8 * model.front().words;
        model.pop_front();
      }
    } else if (random() % 4 == 0) {
      reader_.ReleaseSpace();
      released = read;
    }
    ASSERT_EQ(reader_.pending_bytes(), written - read);
    ASSERT_EQ(reader_.position(), read);
    ASSERT_EQ(reader_.released(), released);
  }
  EXPECT_GT(written, 50 * kSize);
  EXPECT_EQ(reader_.corrupt_records(), 0u);
}

TEST_F(RingTest, AFullRingRefusesUntilSpaceIsReleased) {
  const size_t words = kSize / 4 / 8 - 1;  // four records fill the ring exactly
  for (uint64_t i = 0; i < 4; ++i)
    ASSERT_TRUE(Write(words, i));
  EXPECT_EQ(reader_.pending_bytes(), kSize);
  EXPECT_FALSE(Write(0, 0));
  ExpectNext(words, 0);
  EXPECT_FALSE(Write(0, 0));  // read, but not yet given back
  reader_.PublishConsumed();
  EXPECT_EQ(ring_.header().consumed_position.load(), kSize / 4);
  EXPECT_FALSE(Write(0, 0));
  reader_.ReleaseSpace();
  EXPECT_EQ(ring_.header().read_position.load(), kSize / 4);
  EXPECT_EQ(ring_.header().read_futex.load(), kSize / 4);
  EXPECT_TRUE(Write(words, 4));
  EXPECT_FALSE(Write(0, 0));
  for (uint64_t i = 1; i <= 4; ++i)
    ExpectNext(words, i);
  ExpectEmpty();
}

TEST_F(RingTest, ARecordOfHalfTheRingIsTheLargest) {
  EXPECT_FALSE(Write(kSize / 2 / 8, 1));
  EXPECT_TRUE(Write(kSize / 2 / 8 - 1, 1));
  ExpectNext(kSize / 2 / 8 - 1, 1);
}

TEST(LargeRingTest, ARecordCannotBeLongerThanItsHeaderCanSay) {
  TestRing ring(uint64_t{2} << 20);
  RingWriter writer = ring.Writer();
  EXPECT_EQ(writer.Reserve(RecordType::kSample, kMaxRecordSize).payload, nullptr);
  const auto largest = writer.Reserve(RecordType::kSample, kMaxRecordSize - 8);
  ASSERT_NE(largest.payload, nullptr);
  writer.Commit(largest);
  RingReader reader = ring.Reader();
  RingReader::Record record;
  ASSERT_EQ(reader.Read(&record, false), Outcome::kRecord);
  EXPECT_EQ(record.payload.size(), kMaxRecordSize - 8);
}

TEST_F(RingTest, BytesOfAnEarlierLapAreNotARecord) {
  for (uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Write(kSize / 2 / 8 - 1, i));
    ExpectNext(kSize / 2 / 8 - 1, i);
  }
  reader_.ReleaseSpace();
  // Reserved by a writer that has not yet stored its header: the old one is still there.
  ring_.header().write_position.fetch_add(kSize / 2);
  ExpectEmpty();
}

TEST_F(RingTest, WhenTheWritersAreGoneTheRestBehindAnUncommittedRecordIsRead) {
  ASSERT_TRUE(Write(2, 1));
  writer_.Reserve(RecordType::kSample, 80);
  ASSERT_TRUE(Write(3, 2));
  writer_.Reserve(RecordType::kSample, 8);
  ExpectNext(2, 1);
  ExpectEmpty();
  RingReader::Record record;
  EXPECT_EQ(reader_.Read(&record, true), Outcome::kSkipped);
  EXPECT_EQ(reader_.corrupt_records(), 1u);
  ExpectNext(3, 2);
  EXPECT_EQ(reader_.Read(&record, true), Outcome::kSkipped);
  ExpectEmpty(/*writers_gone=*/true);
  EXPECT_EQ(reader_.corrupt_records(), 2u);
  EXPECT_EQ(reader_.pending_bytes(), 0u);
  ASSERT_TRUE(Write(1, 3));  // the ring goes on
  ExpectNext(1, 3);
}

TEST_F(RingTest, ASkippedRecordThatIsCommittedLaterDoesNoHarm) {
  const auto late = writer_.Reserve(RecordType::kFree, 24);
  ASSERT_TRUE(Write(1, 1));
  RingReader::Record record;
  ASSERT_EQ(reader_.Read(&record, true), Outcome::kSkipped);
  writer_.Commit(late);
  ExpectNext(1, 1);
  ExpectEmpty();
}

TEST_F(RingTest, ACorruptedHeaderIsSkippedOnlyWhenNoWriterCanFinishIt) {
  const RecordHeader broken[] = {
      {.tag = RecordTag(0) + 1,
       .words = 2,
       .type = RecordType::kFree,
       .state = RecordState::kCommitted},
      {.tag = RecordTag(0),
       .words = 0,
       .type = RecordType::kFree,
       .state = RecordState::kCommitted},
      {.tag = RecordTag(0),
       .words = 65535,
       .type = RecordType::kFree,
       .state = RecordState::kCommitted},
      {.tag = RecordTag(0),
       .words = 2,
       .type = RecordType::kFree,
       .state = static_cast<RecordState>(3)},
  };
  for (const RecordHeader& header : broken) {
    TestRing ring(kSize);
    RingWriter writer = ring.Writer();
    RingReader reader = ring.Reader();
    for (int i = 0; i < 2; ++i)
      writer.Commit(writer.Reserve(RecordType::kFree, 8));
    memcpy(ring.bytes(), &header, sizeof(header));
    RingReader::Record record;
    EXPECT_EQ(reader.Read(&record, false), Outcome::kEmpty);
    EXPECT_EQ(reader.Read(&record, true), Outcome::kSkipped);
    EXPECT_EQ(reader.position(), 16u);
    EXPECT_EQ(reader.Read(&record, false), Outcome::kRecord);
    EXPECT_EQ(reader.Read(&record, true), Outcome::kEmpty);
  }
}

TEST_F(RingTest, ALengthBeyondWhatWasReservedIsNotBelieved) {
  ASSERT_TRUE(Write(1, 1));
  RecordHeader header{.tag = RecordTag(0),
                      .words = 3,
                      .type = RecordType::kFree,
                      .state = RecordState::kCommitted};
  memcpy(WordAt(0), &header, sizeof(header));
  ExpectEmpty();
}

TEST_F(RingTest, AWritePositionBehindTheReaderIsAnEmptyRing) {
  ASSERT_TRUE(Write(1, 1));
  ExpectNext(1, 1);
  ring_.header().write_position.store(0);
  EXPECT_EQ(reader_.pending_bytes(), 0u);
  ExpectEmpty();
  ExpectEmpty(/*writers_gone=*/true);
}

// Otherwise a target that exits with such a position would keep the engine searching.
TEST_F(RingTest, AWritePositionFartherThanTheRingIsLongIsAnEmptyRing) {
  ASSERT_TRUE(Write(1, 1));
  ExpectNext(1, 1);
  for (const uint64_t lie :
       {16 + kSize + 1, 16 + kSize + 8, uint64_t{1} << 40, UINT64_MAX - 7, UINT64_MAX}) {
    ring_.header().write_position.store(lie);
    EXPECT_EQ(reader_.pending_bytes(), 0u) << lie;
    ExpectEmpty();
    ExpectEmpty(/*writers_gone=*/true);
  }
}

TEST_F(RingTest, AMisalignedWritePositionEndsTheReading) {
  ring_.header().write_position.store(7);
  ExpectEmpty(/*writers_gone=*/true);
  ring_.header().write_position.store(13);
  RingReader::Record record;
  EXPECT_EQ(reader_.Read(&record, true), Outcome::kSkipped);
  EXPECT_EQ(reader_.position(), 8u);
  ExpectEmpty(/*writers_gone=*/true);
}

TEST_F(RingTest, ARingOfRandomBytesEndsAfterAtMostOneReadPerWord) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 20; ++round) {
    TestRing ring(kSize);
    for (uint64_t position = 0; position < kSize; position += 8) {
      RecordHeader header{.tag = RecordTag(position),
                          .words = static_cast<uint16_t>(random() % 64),
                          .type = static_cast<RecordType>(random()),
                          .state = static_cast<RecordState>(random() % 4)};
      memcpy(ring.bytes() + position, &header, sizeof(header));
    }
    ring.header().write_position.store(kSize);
    RingReader reader = ring.Reader();
    RingReader::Record record;
    uint64_t reads = 0;
    while (reader.Read(&record, true) != Outcome::kEmpty)
      ASSERT_LE(++reads, kSize / 8);
    EXPECT_EQ(reader.position(), kSize);
  }
}

}  // namespace
}  // namespace heapprofd
