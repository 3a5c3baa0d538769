#include "engine/idle/idle_looks.h"

#include <utility>

#include "base/clock.h"

namespace heapprofd {

IdleLooks IdleLooks::Of(pid_t pid, const SessionConfig& config, const Parts& parts) {
  IdleLooks looks(parts);
  if (!config.idle_allocations)
    return looks;
  Result<IdlePages::Files> files = IdlePages::Open(pid);
  looks.note_ = files.ok() ? IdlePages::Caveat() : files.status().message();
  if (files.ok())
    looks.memory_.emplace(IdlePages(pid, std::move(files).value()),
                          /*looks_between=*/config.dumps.interval_ms == 0, MonotonicNs());
  return looks;
}

bool IdleLooks::Look(IdleMemory::Occasion occasion, uint64_t turn_ns) {
  if (!memory_)
    return true;
  if (!memory_->is_looking() && !parts_.account->HasRoomFor(IdleMemory::kMaxBytes)) {
    memory_->Forget();
    return true;
  }
  const uint64_t now = MonotonicNs();
  const bool is_done = memory_->Look(*parts_.heap, occasion, now, now + turn_ns);
  parts_.account->Charge();
  return is_done;
}

void IdleLooks::LookBetween(uint64_t end_ns) {
  const uint64_t now = MonotonicNs();
  if (memory_ && now < end_ns && memory_->IsDue(now))
    Look(IdleMemory::Occasion::kBetween, end_ns - now);
}

void IdleLooks::Drop() {
  if (memory_)
    memory_->Drop();
}

}  // namespace heapprofd
