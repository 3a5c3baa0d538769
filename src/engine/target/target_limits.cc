// What a target takes of the engine's memory, and whether it may take more: against the
// limits of its user, whose other targets share them.
#include "engine/target/target.h"

namespace heapprofd {

uint64_t Target::EstimatedBytes() const {
  constexpr uint64_t kPerFrame = sizeof(Frame) + 48;  // and what finds it
  constexpr uint64_t kPerCallsite = sizeof(Callsite) + 56;
  constexpr uint64_t kPerMark = sizeof(Mark) + 64;  // its name
  constexpr uint64_t kPerTotals = 200;              // of a callsite in a requested dump
  uint64_t bytes = sizeof(*this) + address_space_->bytes() +
                   profile_.frames.size() * kPerFrame +
                   profile_.callsites.size() * kPerCallsite +
                   profile_.threads.size() * sizeof(ThreadDescription) +
                   profile_.marks.size() * kPerMark + requested_cost_ * kPerTotals;
  for (const std::string& argument : profile_.process.cmdline)
    bytes += sizeof(std::string) + argument.size();
  for (const HeapDump& dump : profile_.heaps)
    bytes += sizeof(dump) + dump.callsites.bytes() + dump.peak.bytes() +
             dump.threads.capacity() * sizeof(CallsiteTotals);
  if (memory_ != nullptr)
    bytes += heap_->bytes() + custom_heaps_.bytes() + stacks_->bytes();
  return bytes;
}

// What is live is remembered one by one, the program may be hostile, and have company.
// There can be 255 heaps to count, so that is not done for each sample; but no table
// doubles unless there is room for it, beside what it replaces.
bool Target::HasRoom(uint8_t heap_id) {
  constexpr uint64_t kEvery = 1024;
  if (profile_.quality.samples % kEvery == 0) {
    has_memory_ = account_.HasRoom();
    has_room_ =
        heap_->live_samples() + custom_heaps_.live_samples() < config_.max_live_samples;
  }
  if (!has_memory_ || !has_room_)
    return false;
  if (const size_t growth = GrowthBytes(heap_id); growth != 0) {
    account_.Set(EstimatedBytes());
    has_room_ = account_.HasRoom(growth);
  }
  return has_room_;
}

// What the next live sample of this heap takes for a moment.
size_t Target::GrowthBytes(uint8_t heap_id) {
  if (heap_id == kMallocHeapId)
    return heap_->growth_bytes();
  const CustomHeap* heap = custom_heaps_.Find(heap_id);
  return heap != nullptr ? heap->live().growth_bytes() : 0;
}

}  // namespace heapprofd
