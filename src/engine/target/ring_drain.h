// Reads one target's ring, in turns: how much at once, when space goes back to the
// writers, what to do about a record that is never completed, and what was not read.
//
// What is in a record is not looked at here.
//
// One thread: the session's. The writers are the target's threads, and hostile.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "engine/tsc_clock.h"
#include "profile/model.h"
#include "wire/memory_files.h"
#include "wire/ring_reader.h"

namespace heapprofd {

class RingDrain {
 public:
  // All outlive it. `pid`: of the writers.
  RingDrain(SharedMemory* memory, pid_t pid, const TscClock* clock);

  const RingReader& reader() const { return reader_; }

  uint64_t position() const { return reader_.position(); }

  double fill() const;  // 0..1

  // The last Read has left something in the ring.
  bool is_behind() const { return is_behind_; }

  // Once through the ring from here: a target that goes on writing cannot hold whoever
  // waits for what is in it now.
  uint64_t RestEnd() const { return position() + memory_->ring_size(); }

  // Reads what is in the ring, at most `max_records` and about until `turn_end_ns`, and
  // returns how many there were. `writers_gone`: the process has ended, nothing can be
  // pending.
  //
  // `sink` has bool Handle(const RingReader::Record&), false: it is damaged;
  // Prefetch(type, words), for records that come soon; dear_steps(), which grows with
  // each record that took long to handle: those must not keep the engine from its other
  // targets.
  template <typename Sink>
  size_t Read(Sink& sink, size_t max_records, bool writers_gone, uint64_t turn_end_ns);

  // What is not read is given up, and counts as lost.
  void Lose(bool writers_gone);

  // All who wait for space look whether there is still anything to wait for.
  void WakeAll() { reader_.WakeAll(); }

  // Of records that were given up.
  uint64_t unread_records() const { return unread_records_; }

  // What could not be read, told by what it was; `threads`: that may have left one record
  // each when they ended with their process.
  void CountDamage(uint64_t threads, Quality* quality) const;

 private:
  static constexpr uint64_t kResidentRing = 1 << 20;  // bytes that stay resident
  static constexpr size_t kRecordsPerLook = 16;       // at the clock

  void ReleaseSpace();
  bool IsStuck();

  SharedMemory* memory_;
  pid_t pid_;
  const TscClock* clock_;
  RingReader reader_;
  bool is_behind_ = false;
  uint64_t stuck_position_ = UINT64_MAX;  // none yet
  uint64_t stuck_since_ns_ = 0;
  std::optional<uint64_t> stuck_cpu_ns_;  // of the process when it was noticed
  uint64_t bad_records_ = 0;
  uint64_t unread_records_ = 0;
  uint64_t skipped_at_end_ = 0;  // when the process was gone
};

template <typename Sink>
size_t RingDrain::Read(Sink& sink,
                       size_t max_records,
                       bool writers_gone,
                       uint64_t turn_end_ns) {
  size_t count = 0;
  uint64_t dear_steps = sink.dear_steps();
  bool is_over = false;
  is_behind_ = true;
  while (count < max_records && !is_over) {
    RingReader::Record record;
    RingReader::Outcome outcome = reader_.Read(&record, writers_gone);
    if (outcome == RingReader::Outcome::kEmpty && !writers_gone && IsStuck())
      outcome = reader_.Read(&record, /*writers_gone=*/true);
    if (outcome == RingReader::Outcome::kEmpty) {
      is_behind_ = false;
      break;
    }
    reader_.LookAhead(
        [&sink](RecordType type, auto words) { sink.Prefetch(type, words); });
    if (outcome == RingReader::Outcome::kRecord)
      bad_records_ += sink.Handle(record) ? 0u : 1u;
    else if (writers_gone)
      ++skipped_at_end_;
    ReleaseSpace();
    ++count;
    const uint64_t dear_now = sink.dear_steps();
    const bool was_dear = std::exchange(dear_steps, dear_now) != dear_now;
    is_over = (was_dear || count % kRecordsPerLook == 0) && MonotonicNs() >= turn_end_ns;
  }
  reader_.PublishConsumed();
  if (count > 0)
    reader_.Rewind(kResidentRing);
  reader_.WakeForFreeSpace();
  return count;
}

}  // namespace heapprofd
