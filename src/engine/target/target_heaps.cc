#include "engine/target/target_heaps.h"

#include <algorithm>
#include <utility>

#include "engine/target/exact_totals.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxListedBlocks = 1'000'000;  // of a process

}  // namespace

TargetHeaps::TargetHeaps(SharedMemory* memory, const PublishedConfig* published)
    : memory_(memory),
      published_(published),
      malloc_interval_(HeapIntervalByName(published->rules(), kMallocHeapName)) {}

CustomHeap& TargetHeaps::Other(uint8_t heap_id) {
  return others_.Get(heap_id, memory_->client(), published_->rules());
}

void TargetHeaps::FreeInOther(const FreeRecord& record, const Freeing& freeing) {
  if (CustomHeap* heap = others_.Find(record.heap_id))
    heap->Free(record.address, freeing);
}

void TargetHeaps::UndoFree(const FreeRecord& record, uint64_t now_ns) {
  if (record.heap_id == kMallocHeapId)
    malloc_.UndoRealloc(record.address, record.thread_id, now_ns);
  else
    FreeInOther(record, {});
}

size_t TargetHeaps::live_samples() const {
  return malloc_.live_samples() + others_.live_samples();
}

size_t TargetHeaps::GrowthOfOther(uint8_t heap_id) {
  const CustomHeap* heap = others_.Find(heap_id);
  return heap != nullptr ? heap->live().growth_bytes() : 0;
}

std::vector<std::string> TargetHeaps::FindUnrecorded() {
  return others_.FindPublished(memory_->client(), published_->rules());
}

// A program can have heaps of its own and no hooks of malloc; that malloc's heap is empty
// is worth saying only when there is nothing else.
std::vector<HeapDump> TargetHeaps::Snapshot() const {
  std::vector<HeapDump> dumps = others_.Snapshot(memory_->client(), published_->rules());
  HeapDump malloc_dump = DumpOfMalloc();
  if (malloc_interval_ != 0 && (malloc_dump.exact_alloc_calls > 0 || dumps.empty()))
    dumps.insert(dumps.begin(), std::move(malloc_dump));
  return dumps;
}

uint64_t TargetHeaps::SnapshotShapes(uint64_t now_ns, std::span<HeapDump> dumps) const {
  uint64_t left_out = 0;
  if (!dumps.empty() && dumps[0].heap_name == kMallocHeapName) {
    left_out = malloc_.SnapshotShapes(now_ns, dumps.data());
    dumps = dumps.subspan(1);
  }
  return left_out + others_.SnapshotShapes(now_ns, dumps);
}

uint64_t TargetHeaps::SnapshotBlocks(std::span<HeapDump> dumps) const {
  return !dumps.empty() && dumps[0].heap_name == kMallocHeapName
             ? malloc_.SnapshotBlocks(kMaxListedBlocks, dumps.data())
             : 0;
}

HeapDump TargetHeaps::CountedMalloc() const {
  HeapDump dump;
  const ClientBlock& client = memory_->client();
  const uint32_t slots = std::min<uint32_t>(
      client.ring.slot_count.load(std::memory_order_acquire), kMaxThreadSlots);
  for (uint32_t i = 0; i < slots; ++i)
    AddExactTotals(client.slots[i], &dump);
  dump.unsampled_bytes = static_cast<double>(
      std::min(dump.exact_alloc_bytes,
               client.ring.unsampled_bytes.load(std::memory_order_relaxed)));
  return dump;
}

HeapDump TargetHeaps::DumpOfMalloc() const {
  HeapDump dump = CountedMalloc();
  dump.heap_name = kMallocHeapName;
  dump.original_sampling_interval = malloc_interval_;
  dump.sampling_interval = published_->interval();
  malloc_.Snapshot(&dump);
  return dump;
}

double TargetHeaps::LiveBytes() const {
  return malloc_.total().LiveBytes(CountedMalloc()) + others_.LiveBytes();
}

}  // namespace heapprofd
