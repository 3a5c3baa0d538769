#include "engine/forked_children.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "engine/exact_totals.h"

namespace heapprofd {
namespace {

uint32_t UsedForkSlots(const ClientBlock& client) {
  return std::min<uint32_t>(client.ring.fork_slot_count.load(std::memory_order_acquire),
                            kMaxForkSlots);
}

bool HasEnded(uint64_t owner) {
  const auto thread_id = static_cast<pid_t>(owner & (kForkSlotOwned - 1));
  return thread_id > 0 && kill(thread_id, 0) != 0 && errno == ESRCH;
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

uint32_t FreeSlotsOfEnded(ClientBlock& client) {
  uint32_t owned = 0;
  const uint32_t used = UsedForkSlots(client);
  for (uint32_t i = 0; i < used; ++i) {
    std::atomic<uint64_t>& held_by = client.fork_slots[i].slot.thread_pointer;
    uint64_t owner = held_by.load(std::memory_order_acquire);
    if (owner == 0)
      continue;
    if (HasEnded(owner))
      held_by.compare_exchange_strong(owner, 0);
    else
      ++owned;
  }
  return owned;
}

uint32_t CountOwnedForkSlots(const ClientBlock& client) {
  const uint32_t used = UsedForkSlots(client);
  return static_cast<uint32_t>(std::count_if(
      client.fork_slots, client.fork_slots + used, [](const ForkSlot& fork_slot) {
        return fork_slot.slot.thread_pointer.load(std::memory_order_relaxed) != 0;
      }));
}

}  // namespace heapprofd
