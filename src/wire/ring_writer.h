// Writing half of the ring: many threads of the target, no lock.
//
// A writer reserves [position, position + size) by advancing write_position, marks the
// record reserved, fills it and commits it with one store. The bytes are mapped twice in
// a row, so a record is contiguous even at the end of the ring. Order of reservation is
// the order of events.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

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
    const uint64_t total = sizeof(RecordHeader) + payload_size;
    if (total > size_ / 2 || total > kMaxRecordSize)
      return {};
    uint64_t position = header_->write_position.load(std::memory_order_relaxed);
    do {
      const uint64_t read = header_->read_position.load(std::memory_order_acquire);
      if (position + total - read > size_)
        return {};
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
