// Reading half of the ring: the engine, one thread. The writer is hostile: it may change
// any byte at any time, so positions are read once and bounded, and a record is copied
// out before it is looked at.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "wire/records.h"
#include "wire/shared_memory.h"

namespace heapprofd {

class RingReader {
 public:
  // `bytes` holds `size` bytes (a power of two) mapped twice in a row.
  RingReader(RingHeader* header, const std::byte* bytes, uint64_t size)
      : header_(header), bytes_(bytes), size_(size) {}

  struct Record {
    RecordType type{};
    // A private copy on 8 bytes, valid until the next call.
    std::span<const std::byte> payload;
  };

  enum class Outcome : uint8_t {
    kRecord,   // *record is set
    kEmpty,    // nothing committed at the read position
    kSkipped,  // bytes that are no record were passed over; counted
  };

  // `writers_gone`: no thread of the target can commit any more (it exited), or the
  // record at the read position has been pending for too long (its writer was killed or
  // jumped out of a signal handler): search for the next committed record instead of
  // waiting.
  Outcome Read(Record* record, bool writers_gone);

  // Calls `look(type, words)` for records that Read will return soon, each once: what is
  // needed for them can be fetched meanwhile. `words` are the first of their payload, at
  // most kWordsAhead, and still the writer's: a hint that may be anything.
  template <typename Look>
  void LookAhead(Look look) {
    const uint64_t limit = std::min(end_, position_ + kBytesAhead);
    ahead_ = std::max(ahead_, position_);
    RecordHeader header;
    while (ahead_ + sizeof(header) <= limit && LoadCommitted(ahead_, limit, &header)) {
      uint64_t words[kWordsAhead];
      const size_t count = std::min<size_t>(header.words - 1u, kWordsAhead);
      memcpy(words, bytes_ + (ahead_ & (size_ - 1)) + sizeof(header), count * 8);
      look(header.type, std::span<const uint64_t>(words, count));
      ahead_ += uint64_t{header.words} * 8;
    }
  }

  // Tells the writers how far Read has come; the space is theirs only after ReleaseSpace.
  void PublishConsumed();

  // Gives the space before position() back to the writers, and wakes as many of those
  // that wait as it has room for.
  void ReleaseSpace();

  // Nothing is left to read for now: wakes more of those that wait, for it may be that
  // the woken ones do not need the space that they were woken for.
  void WakeForFreeSpace();

  // Wakes all that wait: they look whether there is still anything to wait for.
  void WakeAll();

  // When everything is read: lets the writers begin again at the start of the ring, so
  // that a ring that never fills keeps only its first pages resident. Only past `used`
  // bytes from the start.
  void Rewind(uint64_t used);

  uint64_t released() const { return released_; }

  // Bytes reserved and not yet read, bounded by the ring's size.
  uint64_t pending_bytes() const;

  uint64_t position() const { return position_; }

  uint64_t corrupt_records() const { return corrupt_records_; }

  static constexpr size_t kWordsAhead = 4;

 private:
  static constexpr uint64_t kBytesAhead = 512;

  bool LoadCommitted(uint64_t position, uint64_t end, RecordHeader* header) const;
  uint64_t FindNext(uint64_t from, uint64_t end) const;
  void WakeFor(uint64_t bytes);

  RingHeader* header_;
  const std::byte* bytes_;
  uint64_t size_;
  uint64_t position_ = 0;
  uint64_t end_ = 0;    // of what was reserved when Read last asked
  uint64_t ahead_ = 0;  // how far LookAhead has come
  uint64_t released_ = 0;
  uint64_t corrupt_records_ = 0;
  std::vector<uint64_t> copy_;
};

}  // namespace heapprofd
