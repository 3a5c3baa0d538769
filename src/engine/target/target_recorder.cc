#include "engine/target/target_recorder.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <utility>

#include "base/clock.h"
#include "engine/target/exact_totals.h"

namespace heapprofd {
TargetRecorder::TargetRecorder(std::unique_ptr<SharedMemory> memory,
                               const SessionConfig& config,
                               const Kept& kept,
                               bool knows_threads)
    : memory_(std::move(memory)),
      account_(kept.account),
      looks_at_exit_(config.ask_allocator || config.idle_allocations),
      published_(config, &memory_->engine()),
      heaps_(memory_.get(), &published_),
      ring_(memory_.get(), kept.profile->process.pid, kept.clock),
      stacks_({.profile = kept.profile,
               .memory = memory_.get(),
               .reader = &ring_.reader(),
               .code = kept.code,
               .clock = kept.clock}),
      idle_(IdleLooks::Of(kept.profile->process.pid,
                          config,
                          {.heap = &heaps_.malloc_heap(), .account = kept.account})),
      dumper_({.profile = kept.profile,
               .memory = memory_.get(),
               .heaps = &heaps_,
               .ring = &ring_,
               .code = kept.code,
               .children = kept.children,
               .idle = idle_.memory(),
               .lists_blocks = config.list_live_blocks}),
      handler_({.profile = kept.profile,
                .clock = kept.clock,
                .heaps = &heaps_,
                .stacks = &stacks_,
                .account = kept.account,
                .requests = kept.requests,
                .dumper = &dumper_},
               knows_threads),
      governor_(config, &published_, memory_.get(), kept.clock),
      observer_(kept.profile->process.pid, memory_.get(), &kept.profile->memory) {
  account_->Begin({.heaps = &heaps_,
                   .stacks = &stacks_,
                   .idle = idle_.memory(),
                   .max_live_samples = config.max_live_samples});
  stacks_.ShowRegions();
}

size_t TargetRecorder::Drain(size_t max_records, bool writers_gone, uint64_t turn_ns) {
  const uint64_t turn_end_ns = MonotonicNs() + turn_ns;
  stacks_.LookAtLateChange();
  const size_t count = ring_.Read(handler_, max_records, writers_gone, turn_end_ns);
  if (count > 0)
    account_->Charge();
  return count;
}

bool TargetRecorder::DrainRest(uint64_t end, bool writers_gone, uint64_t turn_ns) {
  constexpr size_t kBatch = 10'000;
  return ring_.position() >= end || Drain(kBatch, writers_gone, turn_ns) == 0 ||
         !ring_.is_behind();
}

void TargetRecorder::Beat() {
  memory_->engine().control.heartbeat.store(MonotonicNs(), std::memory_order_relaxed);
}

void TargetRecorder::Tick(uint64_t end_ns) {
  Beat();
  const uint64_t now = looks_at_exit_ ? MonotonicNs() : end_ns;
  if (now < end_ns)
    LookAtExit(end_ns - now);
  idle_.LookBetween(end_ns);
  governor_.Look(ring_.reader().pending_bytes());
}

// The program has ended normally and waits for this: its memory is as it was.
void TargetRecorder::LookAtExit(uint64_t turn_ns) {
  RingHeader& header = memory_->client().ring;
  if (header.exiting.load(std::memory_order_acquire) == 0 ||
      header.exit_seen.load(std::memory_order_relaxed) != 0)
    return;
  // What it has done until now belongs into the figures; else a later tick looks again. A
  // program that goes on writing does not put that off.
  if (!exit_end_)
    exit_end_ = ring_.RestEnd();
  if (!DrainRest(*exit_end_, /*writers_gone=*/false, turn_ns) ||
      !idle_.Look(IdleMemory::Occasion::kEnd, turn_ns))
    return;
  exit_end_.reset();
  ReadMemory();
  header.exit_seen.store(1, std::memory_order_release);
}

void TargetRecorder::Stop() {
  std::atomic<uint32_t>& active = memory_->engine().control.active;
  active.store(0, std::memory_order_release);
  syscall(SYS_futex, &active, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  ring_.WakeAll();
}

bool TargetRecorder::has_client() const {
  return memory_->client().ring.slot_count.load(std::memory_order_relaxed) != 0;
}

UnprofiledCounts TargetRecorder::unprofiled_children() const {
  return CountUnprofiled(memory_->client());
}

uint64_t TargetRecorder::lost_records() const {
  return ring_.unread_records() + BoundedCounter(memory_->client().ring.lost_records.load(
                                      std::memory_order_relaxed));
}

}  // namespace heapprofd
