#include "engine/target/forked_children.h"

#include <algorithm>

#include "engine/target/exact_totals.h"

namespace heapprofd {
namespace {

uint32_t UsedForkSlots(const ClientBlock& client) {
  return std::min<uint32_t>(client.ring.fork_slot_count.load(std::memory_order_acquire),
                            kMaxForkSlots);
}

}  // namespace

ForkedChildren CountForkedChildren(const ClientBlock& client) {
  constexpr uint32_t kMaxCount = 1'000'000'000;
  ForkedChildren children;
  children.count =
      std::min(client.ring.counted_children.load(std::memory_order_relaxed), kMaxCount);
  children.uncounted = std::min<uint64_t>(
      children.count, client.ring.children_without_slot.load(std::memory_order_relaxed));
  HeapDump totals;
  const uint32_t used = UsedForkSlots(client);
  for (uint32_t i = 0; i < used; ++i)
    AddExactTotals(client.fork_slots[i].slot, &totals);
  children.alloc_calls = totals.exact_alloc_calls;
  children.alloc_bytes = totals.exact_alloc_bytes;
  return children;
}

std::vector<pid_t> OwnersOfForkSlots(const ClientBlock& client) {
  constexpr size_t kMaxOwners = 256;
  std::vector<pid_t> owners;
  const uint32_t used = UsedForkSlots(client);
  for (uint32_t i = 0; i < used && owners.size() < kMaxOwners; ++i) {
    const uint64_t owner =
        client.fork_slots[i].slot.thread_pointer.load(std::memory_order_acquire);
    const uint64_t id = owner & (kForkSlotOwned - 1);
    if (owner != 0 && id != 0 && id <= INT32_MAX)
      owners.push_back(static_cast<pid_t>(id));
  }
  return owners;
}

uint32_t CountOwnedForkSlots(const ClientBlock& client) {
  const uint32_t used = UsedForkSlots(client);
  return static_cast<uint32_t>(std::count_if(
      client.fork_slots, client.fork_slots + used, [](const ForkSlot& fork_slot) {
        return fork_slot.slot.thread_pointer.load(std::memory_order_relaxed) != 0;
      }));
}

}  // namespace heapprofd
