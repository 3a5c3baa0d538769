#include "engine/target/ring_drain.h"

#include <algorithm>

#include "engine/process_info.h"

namespace heapprofd {
namespace {

constexpr uint64_t kStuckNs = 2'000'000'000;
constexpr uint64_t kStuckCpuNs = 100'000'000;  // of the process meanwhile
constexpr uint64_t kStuckAtMostNs = 30'000'000'000;

}  // namespace

RingDrain::RingDrain(SharedMemory* memory, pid_t pid, const TscClock* clock)
    : memory_(memory),
      pid_(pid),
      clock_(clock),
      reader_(&memory->client().ring, memory->ring(), memory->ring_size()) {}

double RingDrain::fill() const {
  return static_cast<double>(reader_.pending_bytes()) /
         static_cast<double>(memory_->ring_size());
}

void RingDrain::Lose(bool writers_gone) {
  constexpr uint64_t kAtMost = 1'000'000;  // some 0.1 s
  RingReader::Record record;
  for (uint64_t i = 0; i < kAtMost; ++i) {
    const RingReader::Outcome outcome = reader_.Read(&record, writers_gone);
    if (outcome == RingReader::Outcome::kEmpty)
      return;
    unread_records_ += outcome == RingReader::Outcome::kRecord ? 1 : 0;
    if (writers_gone && outcome == RingReader::Outcome::kSkipped)
      ++skipped_at_end_;
  }
  ++unread_records_;
}

void RingDrain::CountDamage(uint64_t threads, Quality* quality) const {
  quality->cut_records = std::min(skipped_at_end_, threads);
  quality->corrupt_records =
      bad_records_ + reader_.corrupt_records() - quality->cut_records;
}

// In steps: every release writes a cache line that the writers read.
void RingDrain::ReleaseSpace() {
  if (reader_.position() - reader_.released() < memory_->ring_size() / 16)
    return;
  // What a burst has used beyond the usual goes back to the system, before its writers
  // can use it again.
  if (reader_.position() % memory_->ring_size() > 2 * kResidentRing)
    memory_->DiscardConsumed(reader_.released(), reader_.position());
  reader_.ReleaseSpace();
}

// A record that stays reserved although time passes: its writer left the hook by longjmp,
// or is stopped. Where processors are short a writer may wait for one for seconds: it is
// given up when its process has run meanwhile.
bool RingDrain::IsStuck() {
  const uint64_t now = clock_->last_ns();
  if (reader_.position() != stuck_position_ || reader_.pending_bytes() == 0) {
    stuck_position_ = reader_.position();
    stuck_since_ns_ = now;
    stuck_cpu_ns_ = std::nullopt;
    return false;
  }
  if (!stuck_cpu_ns_)
    stuck_cpu_ns_ = ProcessCpuNs(pid_);
  const uint64_t stuck_ns = now - stuck_since_ns_;
  return stuck_ns > kStuckAtMostNs ||
         (stuck_ns > kStuckNs && ProcessCpuNs(pid_) - *stuck_cpu_ns_ >= kStuckCpuNs);
}

}  // namespace heapprofd
