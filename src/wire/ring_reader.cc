#include "wire/ring_reader.h"

#include <linux/futex.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "rt/syscall.h"

namespace heapprofd {
namespace {

// A writer that goes on writes more than the record that it has waited with. Were all of
// them woken, most would find the ring full again, and meanwhile they would take the
// processors from the reader and from the writer whose record is to be read next.
constexpr uint64_t kBytesPerWoken = uint64_t{32} << 10;

}  // namespace

uint64_t RingReader::pending_bytes() const {
  const uint64_t written = header_->write_position.load(std::memory_order_acquire);
  const uint64_t pending = written - position_;
  return pending <= size_ ? pending : 0;  // a lying writer: nothing to read
}

bool RingReader::LoadCommitted(uint64_t position,
                               uint64_t end,
                               RecordHeader* header) const {
  const std::byte* at = bytes_ + (position & (size_ - 1));
  const uint64_t word =
      __atomic_load_n(reinterpret_cast<const uint64_t*>(at), __ATOMIC_ACQUIRE);
  memcpy(header, &word, sizeof(*header));
  return header->state == RecordState::kCommitted && header->tag == RecordTag(position) &&
         header->words >= 1 && position + uint64_t{header->words} * 8 <= end;
}

uint64_t RingReader::FindNext(uint64_t from, uint64_t end) const {
  RecordHeader header;
  for (uint64_t position = from; position + sizeof(RecordHeader) <= end; position += 8) {
    if (LoadCommitted(position, end, &header))
      return position;
  }
  return end;
}

RingReader::Outcome RingReader::Read(Record* record, bool writers_gone) {
  // Seldom asked for: the writers change it all the time, and each look takes it from
  // them.
  if (position_ == end_ || writers_gone)
    end_ = position_ + pending_bytes() / 8 * 8;
  if (position_ == end_)
    return Outcome::kEmpty;
  RecordHeader header;
  if (!LoadCommitted(position_, end_, &header)) {
    if (!writers_gone)
      return Outcome::kEmpty;
    ++corrupt_records_;
    position_ = FindNext(position_ + 8, end_);
    return Outcome::kSkipped;
  }
  const size_t payload = size_t{header.words} * 8 - sizeof(RecordHeader);
  const std::byte* start = bytes_ + (position_ & (size_ - 1)) + sizeof(RecordHeader);
  copy_.resize(std::max(copy_.size(), payload / 8));
  if (payload > 0)
    memcpy(copy_.data(), start, payload);
  position_ += uint64_t{header.words} * 8;
  record->type = header.type;
  record->payload = std::as_bytes(std::span(copy_)).first(payload);
  return Outcome::kRecord;
}

void RingReader::PublishConsumed() {
  header_->consumed_position.store(position_, std::memory_order_release);
}

void RingReader::ReleaseSpace() {
  if (released_ == position_)
    return;
  const uint64_t bytes = position_ - released_;
  released_ = position_;
  header_->read_position.store(position_, std::memory_order_release);
  // An exchange, for the look at the waiters must not come before it.
  header_->read_futex.exchange(static_cast<uint32_t>(position_),
                               std::memory_order_seq_cst);
  WakeFor(bytes);
}

void RingReader::WakeForFreeSpace() {
  const uint64_t pending = pending_bytes();
  if (pending < size_ / 2)
    WakeFor(size_ - pending);
}

void RingReader::WakeFor(uint64_t bytes) {
  if (header_->waiters.load(std::memory_order_seq_cst) == 0)
    return;
  const uint64_t count = std::max<uint64_t>(bytes / kBytesPerWoken, 1);
  rt::Syscall(SYS_futex, rt::ToArg(&header_->read_futex), FUTEX_WAKE,
              static_cast<long>(std::min<uint64_t>(count, INT_MAX)));
}

void RingReader::WakeAll() {
  header_->read_futex.fetch_add(1, std::memory_order_seq_cst);
  rt::Syscall(SYS_futex, rt::ToArg(&header_->read_futex), FUTEX_WAKE, INT_MAX);
}

// No writer can be inside the skipped bytes: the exchange succeeds only if nothing was
// reserved since everything was read. Between it and ReleaseSpace the writers see the
// skipped bytes as occupied, which leaves them `used` bytes: enough for the largest
// record.
void RingReader::Rewind(uint64_t used) {
  const uint64_t offset = position_ & (size_ - 1);
  if (offset < std::max(used, std::min(size_ / 2, uint64_t{kMaxRecordSize})))
    return;
  uint64_t expected = position_;
  const uint64_t next = position_ - offset + size_;
  if (!header_->write_position.compare_exchange_strong(expected, next,
                                                       std::memory_order_acq_rel))
    return;
  position_ = end_ = next;
  ReleaseSpace();
  PublishConsumed();
}

}  // namespace heapprofd
