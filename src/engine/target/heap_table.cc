#include "engine/target/heap_table.h"

#include <algorithm>
#include <cstring>

#include "engine/target/exact_totals.h"
#include "engine/target/target_text.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxCallsites = 4'000'000;  // of all heaps together

std::string ReadHeapName(const HeapEntry& entry) {
  char name[kHeapNameSize];
  memcpy(name, entry.name, sizeof(name));
  std::string text = TextFromTarget(name, sizeof(name));
  for (char& c : text) {
    if (c == '/' || c == ' ')
      c = '_';
  }
  return text;
}

}  // namespace

void CustomHeap::Allocate(const SampledAllocation& allocation, uint64_t now_ns) {
  interval_ = std::max(interval_, allocation.interval);
  live_.Allocate(allocation, now_ns);
}

void CustomHeap::Snapshot(const HeapRules& rules, HeapDump* dump) const {
  dump->heap_name = name_;
  dump->original_sampling_interval = first_interval_;
  // No sample may have come since it was raised last.
  dump->sampling_interval = std::max(interval_, IntervalInForce(rules, first_interval_));
  live_.Snapshot(dump);
}

CustomHeap& HeapTable::Get(uint8_t heap_id,
                           const ClientBlock& client,
                           const HeapRules& rules) {
  if (heaps_[heap_id] != nullptr)
    return *heaps_[heap_id];
  std::string name = ReadHeapName(client.heaps[heap_id]);
  const uint64_t interval = HeapIntervalByName(rules, name.c_str());
  const bool is_taken = std::any_of(heaps_.begin(), heaps_.end(), [&](const auto& heap) {
    return heap != nullptr && heap->name() == name;
  });
  if (name.empty() || name.starts_with('.') || name == kMallocHeapName || is_taken)
    name = "heap-" + std::to_string(heap_id) + name;
  heaps_[heap_id] = std::make_unique<CustomHeap>(std::move(name), interval);
  return *heaps_[heap_id];
}

std::vector<std::string> HeapTable::FindPublished(const ClientBlock& client,
                                                  const HeapRules& rules) {
  std::vector<std::string> unrecorded;
  for (size_t id = 1; id < kMaxHeaps; ++id) {
    if (client.heaps[id].is_set.load(std::memory_order_acquire) == 0)
      continue;
    const std::string name = ReadHeapName(client.heaps[id]);
    if (heaps_[id] == nullptr && HeapIntervalByName(rules, name.c_str()) == 0)
      unrecorded.push_back(name);
    else
      Get(static_cast<uint8_t>(id), client, rules);
  }
  return unrecorded;
}

std::vector<HeapDump> HeapTable::Counted(const ClientBlock& client) const {
  std::vector<HeapDump> dumps;
  std::array<size_t, kMaxHeaps> index_of{};
  for (size_t id = 1; id < kMaxHeaps; ++id) {
    if (heaps_[id] == nullptr)
      continue;
    index_of[id] = dumps.size();
    dumps.emplace_back();
  }
  if (dumps.empty())
    return dumps;  // and leave the slots' pages untouched
  for (const ThreadSlot& slot : client.heap_slots) {
    const uint8_t id = HeapOfSlotKey(slot.thread_pointer.load(std::memory_order_acquire));
    if (heaps_[id] == nullptr)
      continue;
    AddExactTotals(slot, &dumps[index_of[id]]);
  }
  return dumps;
}

std::vector<HeapDump> HeapTable::Snapshot(const ClientBlock& client,
                                          const HeapRules& rules) const {
  std::vector<HeapDump> dumps = Counted(client);
  auto dump = dumps.begin();
  for (const auto& heap : heaps_) {
    if (heap != nullptr)
      heap->Snapshot(rules, &*dump++);
  }
  return dumps;
}

uint64_t HeapTable::SnapshotShapes(uint64_t now_ns, std::span<HeapDump> dumps) const {
  uint64_t left_out = 0;
  auto dump = dumps.begin();
  for (const auto& heap : heaps_) {
    if (heap != nullptr)
      left_out += heap->live().SnapshotShapes(now_ns, &*dump++);
  }
  return left_out;
}

bool HeapTable::MayAdd(const CustomHeap& heap, CallsiteId callsite) const {
  if (heap.live().HasCallsite(callsite))
    return true;
  size_t count = 0;
  for (const auto& other : heaps_)
    count += other != nullptr ? other->live().callsite_count() : 0;
  return count < kMaxCallsites;
}

size_t HeapTable::live_samples() const {
  size_t samples = 0;
  for (const auto& heap : heaps_)
    samples += heap != nullptr ? heap->live().live_samples() : 0;
  return samples;
}

size_t HeapTable::bytes() const {
  size_t bytes = 0;
  for (const auto& heap : heaps_)
    bytes += heap != nullptr ? heap->live().bytes() : 0;
  return bytes;
}

double HeapTable::LiveBytes() const {
  double bytes = 0;
  for (const auto& heap : heaps_)
    bytes += heap != nullptr ? std::max(0.0, heap->live().total().live().bytes) : 0;
  return bytes;
}

}  // namespace heapprofd
