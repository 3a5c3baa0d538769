#include "engine/target/target_account.h"

#include "engine/idle/idle_memory.h"
#include "engine/stacks/stack_resolver.h"
#include "engine/target/program_requests.h"
#include "engine/target/target.h"
#include "engine/target/target_heaps.h"

namespace heapprofd {

void TargetAccount::End() {
  recorded_ = {};
  Charge();
}

uint64_t TargetAccount::EstimatedBytes() const {
  constexpr uint64_t kPerFrame = sizeof(Frame) + 48;  // and what finds it
  constexpr uint64_t kPerCallsite = sizeof(Callsite) + 56;
  constexpr uint64_t kPerMark = sizeof(Mark) + 64;  // its name
  constexpr uint64_t kPerTotals = 200;              // of a callsite in a requested dump
  const TargetProfile& profile = *kept_.profile;
  uint64_t bytes = sizeof(Target) + kept_.code->known().bytes() +
                   profile.frames.size() * kPerFrame +
                   profile.callsites.size() * kPerCallsite +
                   profile.threads.size() * sizeof(ThreadDescription) +
                   profile.marks.size() * kPerMark + kept_.requests->cost() * kPerTotals;
  for (const std::string& argument : profile.process.cmdline)
    bytes += sizeof(std::string) + argument.size();
  for (const HeapDump& dump : profile.heaps)
    bytes += sizeof(dump) + dump.callsites.bytes() + dump.peak.bytes() +
             dump.idle.callsites.bytes() +
             dump.threads.capacity() * sizeof(CallsiteTotals) +
             dump.shapes.capacity() * sizeof(ShapeRow) +
             dump.blocks.capacity() * sizeof(LiveBlock);
  if (recorded_.heaps != nullptr)
    bytes +=
        sizeof(TargetRecorder) + recorded_.heaps->bytes() + recorded_.stacks->bytes();
  if (recorded_.idle != nullptr)
    bytes += recorded_.idle->bytes();
  return bytes;
}

// What is live is remembered one by one, the program may be hostile, and have company.
// There can be 255 heaps to count, so that is not done for each sample; but no table
// doubles unless there is room for it, beside what it replaces.
bool TargetAccount::HasRoom(uint8_t heap_id, uint64_t samples) {
  constexpr uint64_t kEvery = 1024;
  if (samples % kEvery == 0) {
    has_memory_ = account_.HasRoom();
    has_room_ = recorded_.heaps->live_samples() < recorded_.max_live_samples;
  }
  if (!has_memory_ || !has_room_)
    return false;
  if (const size_t growth = recorded_.heaps->GrowthBytes(heap_id); growth != 0) {
    Charge();
    has_room_ = account_.HasRoom(growth);
  }
  return has_room_;
}

}  // namespace heapprofd
