// Writing half of the ring: many threads of the target, no lock.
//
// A writer reserves [position, position + size) by advancing write_position, marks the
// record reserved, fills it and commits it with one store. The bytes are mapped twice in
// a row, so a record is contiguous even at the end of the ring. Order of reservation is
// the order of events.
#pragma once

#include <linux/futex.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rt/syscall.h"
#include "wire/records.h"
#include "wire/shared_memory.h"

namespace heapprofd {

class RingWriter {
 public:
  struct Reservation {
    std::byte* payload = nullptr;  // nullptr: no space
    uint64_t end = 0;              // ring position behind the record
    RecordHeader header{};
  };

  RingWriter() = default;

  // `bytes` is the start of the doubly mapped ring of `size` bytes (a power of two).
  RingWriter(RingHeader* header, std::byte* bytes, uint64_t size)
      : header_(header), bytes_(bytes), size_(size) {}

  // `payload_size` is a multiple of 8; the whole record must fit half the ring.
  Reservation Reserve(RecordType type, size_t payload_size) {
    if (!CanEverHold(payload_size))
      return {};
    const uint64_t total = sizeof(RecordHeader) + payload_size;
    uint64_t read = header_->read_position.load(std::memory_order_acquire);
    uint64_t position = header_->write_position.load(std::memory_order_relaxed);
    do {
      // A thread that was interrupted here may hold positions of different moments: full
      // is what is full by the latest ones.
      while (position + total - read > size_) {
        const uint64_t now = header_->read_position.load(std::memory_order_acquire);
        if (now == read)
          return {};
        read = now;
        position = header_->write_position.load(std::memory_order_relaxed);
      }
    } while (!header_->write_position.compare_exchange_weak(position, position + total,
                                                            std::memory_order_relaxed));
    Reservation reservation;
    reservation.header = RecordHeader{.tag = RecordTag(position),
                                      .words = static_cast<uint16_t>(total / 8),
                                      .type = type,
                                      .state = RecordState::kReserved};
    std::byte* start = bytes_ + (position & (size_ - 1));
    StoreHeader(start, reservation.header);
    reservation.payload = start + sizeof(RecordHeader);
    reservation.end = position + total;
    return reservation;
  }

  bool CanEverHold(size_t payload_size) const {
    const uint64_t total = sizeof(RecordHeader) + payload_size;
    return total <= size_ / 2 && total <= kMaxRecordSize;
  }

  // Whether Reserve would find space now.
  bool HasSpace(size_t payload_size) const {
    const uint64_t read = header_->read_position.load(std::memory_order_acquire);
    const uint64_t position = header_->write_position.load(std::memory_order_relaxed);
    return position + sizeof(RecordHeader) + payload_size - read <= size_;
  }

  // Changes whenever space is released: to be read before the look for space that
  // SleepUntilRelease is to follow.
  uint32_t release_mark() const {
    return header_->read_futex.load(std::memory_order_acquire);
  }

  // Until the reader wakes this writer, at most `limit_ns`; not at all when there was a
  // release since `mark` was read.
  void SleepUntilRelease(uint32_t mark, uint64_t limit_ns) {
    constexpr uint64_t kNsPerSecond = 1'000'000'000;
    const timespec limit{.tv_sec = static_cast<time_t>(limit_ns / kNsPerSecond),
                         .tv_nsec = static_cast<long>(limit_ns % kNsPerSecond)};
    header_->waiters.fetch_add(1, std::memory_order_seq_cst);
    rt::Syscall(SYS_futex, rt::ToArg(&header_->read_futex), FUTEX_WAIT,
                static_cast<long>(mark), rt::ToArg(&limit));
    header_->waiters.fetch_sub(1, std::memory_order_relaxed);
  }

  // The reader has the lines of its own in another processor's cache: asks for those of
  // the next record early.
  void PrefetchNext() const {
    const uint64_t position = header_->write_position.load(std::memory_order_relaxed);
    __builtin_prefetch(bytes_ + (position & (size_ - 1)), 1);
    __builtin_prefetch(bytes_ + ((position + 64) & (size_ - 1)), 1);
  }

  void Commit(const Reservation& reservation) {
    RecordHeader header = reservation.header;
    header.state = RecordState::kCommitted;
    StoreHeader(reservation.payload - sizeof(RecordHeader), header);
  }

  uint64_t size() const { return size_; }

  RingHeader* header() { return header_; }

 private:
  static void StoreHeader(std::byte* at, RecordHeader header) {
    uint64_t word = 0;
    memcpy(&word, &header, sizeof(word));
    __atomic_store_n(reinterpret_cast<uint64_t*>(at), word, __ATOMIC_RELEASE);
  }

  RingHeader* header_ = nullptr;
  std::byte* bytes_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace heapprofd
