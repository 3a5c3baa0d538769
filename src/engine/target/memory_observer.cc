#include "engine/target/memory_observer.h"

#include <algorithm>

#include "engine/process_info.h"

namespace heapprofd {

MemoryObserver::MemoryObserver(pid_t pid, SharedMemory* memory, MemoryContext* seen)
    : pid_(pid), image_(ReadMemoryStatus(pid).image), memory_(memory), seen_(seen) {}

void MemoryObserver::Ask() {
  ++question_;
  memory_->engine().control.allocator_question.store(question_,
                                                     std::memory_order_release);
}

bool MemoryObserver::HasAnswer() const {
  const uint32_t answered =
      memory_->client().ring.allocator.answered.load(std::memory_order_acquire);
  return answered != 0 && (answered == question_ || answered == kQuestionAtExit);
}

void MemoryObserver::Read(double live_bytes) {
  const MemoryContext now = ReadMemoryContext(pid_);
  if (!IsOfTarget({now, ReadMemoryStatus(pid_).image}))
    return;
  *seen_ = now;
  seen_->requested = live_bytes;
  if (HasAnswer())
    ReadReport();
}

void MemoryObserver::Look(double live_bytes, uint64_t now_ns) {
  constexpr uint64_t kLongestNs = 100'000'000;
  if (now_ns < next_look_ns_)
    return;
  const uint64_t first_ns = first_look_ns_.value_or(now_ns);
  first_look_ns_ = first_ns;
  next_look_ns_ = now_ns + std::min((now_ns - first_ns) / 8, kLongestNs);
  const MemoryStatus now = ReadMemoryStatus(pid_);
  if (!IsOfTarget(now))
    return;
  if (!seen_->allocator.empty() && HasAnswer())
    return;  // what stands belongs together
  *seen_ = now.context;
  seen_->requested = live_bytes;
}

// The memory that the process has after the look is that which was looked at.
bool MemoryObserver::IsOfTarget(const MemoryStatus& now) {
  if (now.context.rss_kib == 0 || !image_.MayBecome(now.image))
    return false;
  image_ = now.image;
  return true;
}

void MemoryObserver::ReadReport() {
  const AllocatorReport& report = memory_->client().ring.allocator;
  const uint32_t kind = report.kind.load(std::memory_order_relaxed);
  if (kind != static_cast<uint32_t>(AllocatorKind::kGlibc) &&
      kind != static_cast<uint32_t>(AllocatorKind::kJemalloc))
    return;
  seen_->allocator =
      kind == static_cast<uint32_t>(AllocatorKind::kGlibc) ? "glibc" : "jemalloc";
  seen_->allocator_system = report.system.load(std::memory_order_relaxed);
  seen_->allocator_in_use = report.in_use.load(std::memory_order_relaxed);
  seen_->allocator_free = report.free.load(std::memory_order_relaxed);
}

}  // namespace heapprofd
