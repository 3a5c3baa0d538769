// Several writers and one reader at once: nothing is lost, doubled or torn, and each
// thread's records stay in its order.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "wire/test_ring.h"

namespace heapprofd {
namespace {

constexpr uint64_t kThreads = 4;
constexpr uint64_t kRecords = 30'000;  // per thread

struct Line {
  uint64_t thread;
  uint64_t sequence;
};

// Payload: the line, then as many copies of the sequence number as it says.
constexpr uint64_t CopiesOf(uint64_t sequence) {
  return sequence * 7 % 61;
}

bool Write(RingWriter& writer, const Line& line) {
  const uint64_t copies = CopiesOf(line.sequence);
  const auto reservation = writer.Reserve(RecordType::kSample, sizeof(line) + 8 * copies);
  if (reservation.payload == nullptr)
    return false;
  memcpy(reservation.payload, &line, sizeof(line));
  for (uint64_t i = 0; i < copies; ++i)
    memcpy(reservation.payload + sizeof(line) + 8 * i, &line.sequence, 8);
  writer.Commit(reservation);
  return true;
}

Line CheckedLine(const RingReader::Record& record) {
  Line line{};
  EXPECT_GE(record.payload.size(), sizeof(line));
  memcpy(&line, record.payload.data(), sizeof(line));
  EXPECT_EQ(record.payload.size(), sizeof(line) + 8 * CopiesOf(line.sequence));
  for (size_t at = sizeof(line); at < record.payload.size(); at += 8) {
    uint64_t copy = 0;
    memcpy(&copy, record.payload.data() + at, sizeof(copy));
    EXPECT_EQ(copy, line.sequence);
  }
  EXPECT_LT(line.thread, kThreads);
  return line;
}

TEST(RingThreadsTest, EveryRecordArrivesOnceAndInItsThreadsOrder) {
  TestRing ring(8192);
  std::atomic<bool> is_failed = false;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      RingWriter writer = ring.Writer();
      for (uint64_t sequence = 0; sequence < kRecords; ++sequence) {
        while (!Write(writer, {thread, sequence}) && !is_failed)
          std::this_thread::yield();
      }
    });
  }
  RingReader reader = ring.Reader();
  std::array<uint64_t, kThreads> next{};
  for (uint64_t received = 0; received < kThreads * kRecords;) {
    RingReader::Record record;
    if (reader.Read(&record, false) == RingReader::Outcome::kEmpty) {
      reader.ReleaseSpace();
      std::this_thread::yield();
      continue;
    }
    const Line line = CheckedLine(record);
    is_failed = line.thread >= kThreads || line.sequence != next[line.thread]++;
    if (is_failed)
      break;
    ++received;
  }
  EXPECT_FALSE(is_failed);
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(reader.pending_bytes(), 0u);
  EXPECT_EQ(reader.corrupt_records(), 0u);
}

// Each thread waits until its record's space is free again, so that there is always room:
// a writer that was interrupted in Reserve must not take old positions for a full ring.
TEST(RingThreadsTest, ARingWithSpaceRefusesNobody) {
  constexpr uint64_t kTurns = kRecords / 10;
  TestRing ring(8192);
  std::array<std::atomic<uint64_t>, kThreads> released{};
  std::atomic<uint64_t> refused = 0;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      RingWriter writer = ring.Writer();
      for (uint64_t sequence = 0; sequence < kTurns; ++sequence) {
        while (!Write(writer, {thread, sequence}))
          ++refused;
        while (released[thread] <= sequence)
          std::this_thread::yield();
      }
    });
  }
  RingReader reader = ring.Reader();
  for (uint64_t received = 0; received < kThreads * kTurns;) {
    RingReader::Record record;
    if (reader.Read(&record, false) == RingReader::Outcome::kEmpty) {
      std::this_thread::yield();
      continue;
    }
    const Line line = CheckedLine(record);
    reader.ReleaseSpace();
    released[line.thread % kThreads] = line.sequence + 1;
    ++received;
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(refused, 0u);
}

// State of a thread of this process as the kernel names it, 'S': it sleeps.
char StateOf(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2]
                                                                     : '?';
}

// Threads that wait once for a release.
class Sleepers {
 public:
  Sleepers(TestRing& ring, size_t count) : ids_(count) {
    for (std::atomic<pid_t>& id : ids_) {
      threads_.emplace_back([this, &ring, &id] {
        RingWriter writer = ring.Writer();
        const uint32_t mark = writer.release_mark();
        id = gettid();
        writer.SleepUntilRelease(mark, kGenerousNs);
        ++woken_;
      });
    }
  }

  // Returns when all of them are asleep.
  void AwaitSleep(const RingHeader& header) const {
    while (header.waiters != ids_.size())
      std::this_thread::yield();
    for (const std::atomic<pid_t>& id : ids_) {
      while (StateOf(id) != 'S')
        std::this_thread::yield();
    }
  }

  void AwaitWoken(size_t count) const {
    while (woken_ < count)
      std::this_thread::yield();
  }

  size_t woken() const { return woken_; }

  void Join() {
    for (std::thread& thread : threads_)
      thread.join();
  }

 private:
  static constexpr uint64_t kGenerousNs = 300'000'000'000;

  std::vector<std::atomic<pid_t>> ids_;
  std::atomic<size_t> woken_ = 0;
  std::vector<std::thread> threads_;
};

// Waiting must not slow the reader: a release wakes those that it has room for.
TEST(RingThreadsTest, AReleaseWakesFewOfThoseThatWait) {
  constexpr size_t kSleepers = 20;
  constexpr size_t kRecord = 64 * 1024 - 64;
  TestRing ring(uint64_t{1} << 18);
  Sleepers sleepers(ring, kSleepers);
  sleepers.AwaitSleep(ring.header());
  RingWriter writer = ring.Writer();
  RingReader reader = ring.Reader();
  const auto pass = [&](size_t payload) {
    writer.Commit(writer.Reserve(RecordType::kFree, payload));
    RingReader::Record record;
    ASSERT_EQ(reader.Read(&record, false), RingReader::Outcome::kRecord);
    reader.ReleaseSpace();
  };
  pass(8);
  sleepers.AwaitWoken(1);
  pass(8);
  sleepers.AwaitWoken(2);
  pass(kRecord);
  sleepers.AwaitWoken(3);
  EXPECT_EQ(sleepers.woken(), 3u);
  // An empty ring of 256 KiB has room for eight more.
  reader.WakeForFreeSpace();
  sleepers.AwaitWoken(11);
  EXPECT_EQ(sleepers.woken(), 11u);
  reader.WakeAll();
  sleepers.Join();
  EXPECT_EQ(ring.header().waiters, 0u);
}

TEST(RingThreadsTest, WhoeverLookedBeforeAReleaseDoesNotSleep) {
  TestRing ring(8192);
  RingWriter writer = ring.Writer();
  RingReader reader = ring.Reader();
  const uint32_t before = writer.release_mark();
  writer.Commit(writer.Reserve(RecordType::kFree, 8));
  RingReader::Record record;
  ASSERT_EQ(reader.Read(&record, false), RingReader::Outcome::kRecord);
  reader.ReleaseSpace();
  writer.SleepUntilRelease(before, UINT64_MAX / 2);
  const uint32_t after = writer.release_mark();
  reader.WakeAll();
  writer.SleepUntilRelease(after, UINT64_MAX / 2);
}

TEST(RingThreadsTest, WhatDoesNotFitIsDroppedWholeAndTheRestKeepsItsOrder) {
  TestRing ring(8192);
  std::atomic<uint64_t> accepted = 0;
  std::atomic<uint64_t> running = kThreads;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      RingWriter writer = ring.Writer();
      for (uint64_t sequence = 1; sequence <= kRecords; ++sequence)
        accepted += Write(writer, {thread, sequence}) ? 1u : 0u;
      --running;
    });
  }
  RingReader reader = ring.Reader();
  std::array<uint64_t, kThreads> last{};
  uint64_t received = 0;
  while (true) {
    const bool are_gone = running == 0;
    RingReader::Record record;
    if (reader.Read(&record, false) == RingReader::Outcome::kEmpty) {
      reader.ReleaseSpace();
      if (are_gone)
        break;
      continue;
    }
    const Line line = CheckedLine(record);
    if (line.thread >= kThreads)
      break;
    EXPECT_GT(line.sequence, last[line.thread]);
    last[line.thread] = line.sequence;
    ++received;
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(received, accepted.load());
  EXPECT_GT(received, 0u);
}

}  // namespace
}  // namespace heapprofd
