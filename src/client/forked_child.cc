#include "client/forked_child.h"

#include <algorithm>
#include <cstddef>

#include "client/sampler.h"
#include "rt/compiler.h"
#include "rt/syscall.h"

namespace heapprofd {
namespace {

// Those of children that are gone are used again.
ForkSlot* FindFree(ClientBlock& block, uint64_t owner) {
  std::atomic<uint32_t>& used = block.ring.fork_slot_count;
  uint32_t count = used.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && i < kMaxForkSlots; ++i) {
    std::atomic<uint64_t>& held_by = block.fork_slots[i].slot.thread_pointer;
    uint64_t none = 0;
    if (held_by.load(std::memory_order_relaxed) == 0 &&
        held_by.compare_exchange_strong(none, owner))
      return &block.fork_slots[i];
  }
  do {
    if (count >= kMaxForkSlots)
      return nullptr;
  } while (!used.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel));
  uint64_t none = 0;
  return block.fork_slots[count].slot.thread_pointer.compare_exchange_strong(none, owner)
             ? &block.fork_slots[count]
             : FindFree(block, owner);  // somebody has found it free meanwhile
}

uint64_t Bytes(const ThreadSlot& slot) {
  return slot.granted - slot.bytes_left;
}

void Begin(ForkSlot& fork_slot, uint32_t thread_id) {
  ThreadSlot& slot = fork_slot.slot;
  slot.thread_id = thread_id;
  // Not the time stamp counter: reading it ends a process under strict seccomp.
  slot.random = (g_session.seed() ^ thread_id * 0xd6e8feb86659fd93u ^ slot.granted ^
                 reinterpret_cast<uint64_t>(&slot) * 0x9e3779b97f4a7c15u ^ slot.calls) |
                1;
  NextRandom(&slot.random);
  fork_slot.calls_before = slot.calls;
  fork_slot.bytes_before = Bytes(slot);
  fork_slot.unsampled_calls = fork_slot.unsampled_bytes = 0;
  RestartCountdown(slot,
                   g_session.engine()->control.interval.load(std::memory_order_relaxed));
}

ClientBlock& ForkBlock() {
  return *g_session.fork_block.load(std::memory_order_relaxed);
}

ForkSlot& ForkSlotOf(ThreadSlot& slot) {
  static_assert(offsetof(ForkSlot, slot) == 0);
  return reinterpret_cast<ForkSlot&>(slot);
}

// The engine may have given the slot of a process that it could not see to another one.
uint64_t OwnCalls(const ForkSlot& fork_slot) {
  return fork_slot.slot.calls - std::min(fork_slot.calls_before, fork_slot.slot.calls);
}

uint64_t OwnBytes(const ForkSlot& fork_slot) {
  const uint64_t bytes = Bytes(fork_slot.slot);
  return bytes - std::min(fork_slot.bytes_before, bytes);
}

ThreadSlot* ClaimForkSlotFor(uint32_t thread_id, bool is_certain) {
  ForkSlot* found = FindFree(ForkBlock(), kForkSlotOwned | (is_certain ? thread_id : 0));
  if (found == nullptr)
    return nullptr;
  Begin(*found, thread_id);
  return &found->slot;
}

uint32_t OwnThreadId() {
  return g_session.layout.ThreadId(rt::ThreadPointer());
}

}  // namespace

// A child that was made by a bare system call has its parent's thread id in its control
// block. `t_slot` is still that of the thread that forked.
HPD_COLD ThreadSlot* BeginCounting() {
  const uint32_t parent_id = t_slot->thread_id;
  const uint32_t own_id = OwnThreadId();
  g_session.fork_block.store(g_session.client(), std::memory_order_relaxed);
  g_session.spare_fork_slot.slot.thread_pointer.store(0, std::memory_order_relaxed);
  RingHeader& ring = ForkBlock().ring;
  ring.counted_children.fetch_add(1, std::memory_order_relaxed);
  ThreadSlot* slot = ClaimForkSlotFor(own_id, parent_id != 0 && own_id != parent_id);
  g_session.is_fork_block_full.store(slot == nullptr, std::memory_order_relaxed);
  if (slot != nullptr)
    return slot;
  ring.children_without_slot.fetch_add(1, std::memory_order_relaxed);
  ThreadSlot& spare = g_session.spare_fork_slot.slot;
  spare.thread_pointer.store(kForkSlotOwned, std::memory_order_relaxed);
  Begin(g_session.spare_fork_slot, own_id);
  return &spare;
}

// To look through all of them costs too much for every call of a program.
HPD_COLD ThreadSlot* ClaimForkSlot() {
  if (g_session.is_fork_block_full.load(std::memory_order_relaxed))
    return nullptr;
  ThreadSlot* slot = ClaimForkSlotFor(OwnThreadId(), /*is_certain=*/true);
  if (slot == nullptr)
    g_session.is_fork_block_full.store(true, std::memory_order_relaxed);
  return slot;
}

void EndCounting() {
  RingHeader& ring = ForkBlock().ring;
  ring.counted_children.fetch_sub(1, std::memory_order_relaxed);
  if (g_session.spare_fork_slot.slot.thread_pointer.load(std::memory_order_relaxed) != 0)
    ring.children_without_slot.fetch_sub(1, std::memory_order_relaxed);
}

bool IsForkSlot(const ThreadSlot* slot) {
  const ClientBlock* block = g_session.fork_block.load(std::memory_order_relaxed);
  if (block == nullptr)
    return false;
  const auto* fork_slot = reinterpret_cast<const ForkSlot*>(slot);
  return fork_slot == &g_session.spare_fork_slot ||
         (fork_slot >= block->fork_slots &&
          fork_slot < block->fork_slots + kMaxForkSlots);
}

HPD_COLD void NoteUnsampled(ThreadSlot& slot) {
  ForkSlot& fork_slot = ForkSlotOf(slot);
  fork_slot.unsampled_calls = OwnCalls(fork_slot);
  fork_slot.unsampled_bytes = OwnBytes(fork_slot);
}

HPD_COLD void TakeForkCounts(ThreadSlot& from, ThreadSlot& to) {
  ForkSlot& fork_slot = ForkSlotOf(from);
  const uint64_t calls = OwnCalls(fork_slot);
  const uint64_t bytes = OwnBytes(fork_slot);
  const uint64_t total = Bytes(to) + bytes;
  to.calls += calls;
  to.interval = from.interval;
  to.reserve = from.reserve;
  to.bytes_left = from.bytes_left;
  to.granted = total + from.bytes_left;
  from.calls -= calls;
  from.granted -= bytes;
  RingHeader& ring = g_session.client()->ring;
  ring.unsampled_calls.fetch_add(std::min(fork_slot.unsampled_calls, calls),
                                 std::memory_order_relaxed);
  ring.unsampled_bytes.fetch_add(std::min(fork_slot.unsampled_bytes, bytes),
                                 std::memory_order_relaxed);
  from.thread_pointer.store(0, std::memory_order_release);
}

}  // namespace heapprofd
