// What the kernel and the program's allocator say about a target's memory.
#include "engine/process_info.h"
#include "engine/target/target.h"

namespace heapprofd {

void Target::AskAllocator() {
  ++allocator_question_;
  memory_->engine().control.allocator_question.store(allocator_question_,
                                                     std::memory_order_release);
}

bool Target::HasAllocatorAnswer() const {
  const uint32_t answered =
      memory_->client().ring.allocator.answered.load(std::memory_order_acquire);
  return answered != 0 &&
         (answered == allocator_question_ || answered == kQuestionAtExit);
}

void Target::ReadMemory() {
  const MemoryContext now = ReadMemoryContext(pid());
  if (now.rss_kib == 0)
    return;  // the process is gone: what was seen last stands
  profile_.memory = now;
  if (memory_ == nullptr)
    return;
  profile_.memory.requested = LiveBytes();
  if (HasAllocatorAnswer())
    ReadAllocatorReport();
}

void Target::ObserveMemory() {
  const MemoryContext now = ReadMemoryStatus(pid());
  if (now.rss_kib == 0 || memory_ == nullptr)
    return;
  MemoryContext& memory = profile_.memory;
  if (!memory.allocator.empty() && HasAllocatorAnswer())
    return;  // what stands belongs together
  memory = now;
  memory.requested = LiveBytes();
}

void Target::ReadAllocatorReport() {
  const AllocatorReport& report = memory_->client().ring.allocator;
  const uint32_t kind = report.kind.load(std::memory_order_relaxed);
  if (kind != static_cast<uint32_t>(AllocatorKind::kGlibc) &&
      kind != static_cast<uint32_t>(AllocatorKind::kJemalloc))
    return;
  MemoryContext& memory = profile_.memory;
  memory.allocator =
      kind == static_cast<uint32_t>(AllocatorKind::kGlibc) ? "glibc" : "jemalloc";
  memory.allocator_system = report.system.load(std::memory_order_relaxed);
  memory.allocator_in_use = report.in_use.load(std::memory_order_relaxed);
  memory.allocator_free = report.free.load(std::memory_order_relaxed);
}

// The program has ended normally and waits for this: its memory is as it was.
void Target::LookAtExit(uint64_t turn_ns) {
  RingHeader& header = memory_->client().ring;
  if (header.exiting.load(std::memory_order_acquire) == 0 ||
      header.exit_seen.load(std::memory_order_relaxed) != 0)
    return;
  // What it has done until now belongs into the figures; else a later tick looks again. A
  // program that goes on writing does not put that off.
  if (!exit_end_)
    exit_end_ = RestEnd();
  if (!DrainRest(*exit_end_, /*writers_gone=*/false, turn_ns))
    return;
  exit_end_.reset();
  ReadMemory();
  header.exit_seen.store(1, std::memory_order_release);
}

}  // namespace heapprofd
