#include "client/spare_memory.h"

#include "client/own_memory.h"
#include "client/session.h"
#include "rt/compiler.h"
#include "rt/syscall.h"
#include "wire/small_memory.h"

namespace heapprofd {
namespace {

constexpr uint64_t kMemoBytes =
    ((kMemos - kOwnMemos) * sizeof(StackMemo) + kPageSize - 1) / kPageSize * kPageSize;

// Not tried again when there was none.
template <typename T>
HPD_COLD T* Take(std::atomic<T*>& place, uint64_t size, OnFork on_fork) {
  if (T* there = place.load(std::memory_order_acquire))
    return there;
  if (g_session.ring().size() <= kSmallRing ||
      g_session.lacks_memory.load(std::memory_order_relaxed))
    return nullptr;
  T* taken = MapOnce(place, size, on_fork);
  if (taken == nullptr)
    g_session.lacks_memory.store(true, std::memory_order_relaxed);
  return taken;
}

std::atomic<std::byte*>& MemoryFor(const SampledFilter& filter) {
  return &filter == &g_wiped.filter ? g_session.filter_memory
                                    : g_session.heap_filter_memory;
}

void Wipe(void* memory, size_t size) {
  if (memory != nullptr)
    rt::Syscall(SYS_madvise, rt::ToArg(memory), static_cast<long>(size), MADV_DONTNEED);
}

}  // namespace

HPD_COLD void GiveMemory(SampledFilter& filter) {
  if (std::byte* memory =
          Take(MemoryFor(filter), SampledFilter::kMoreBytes, OnFork::kWiped))
    filter.GiveMemory(memory);
}

HPD_COLD StackMemo* TakeMoreMemos() {
  return Take(g_session.more_memos, kMemoBytes, OnFork::kKept);
}

void ForgetMemos() {
  for (StackMemo& memo : g_session.memos)
    memo.Forget();
  StackMemo* more = g_session.more_memos.load(std::memory_order_acquire);
  for (unsigned i = 0; more != nullptr && i < kMemos - kOwnMemos; ++i)
    more[i].Forget();
}

namespace {

void Unlock(const void* memory, size_t size) {
  if (memory != nullptr)
    rt::Syscall(SYS_munlock, rt::ToArg(memory), static_cast<long>(size));
}

// Shared memory stays what it is without being the process's.
void UnlockShared(const void* memory, size_t size) {
  Unlock(memory, size);
  Wipe(const_cast<void*>(memory), size);
}

}  // namespace

void UnlockOwnMemory() {
  Unlock(&g_wiped, sizeof(g_wiped));
  Unlock(&g_session, sizeof(g_session));
  Unlock(g_session.more_memos.load(), kMemoBytes);
  Unlock(g_session.filter_memory.load(), SampledFilter::kMoreBytes);
  Unlock(g_session.heap_filter.load(), sizeof(SampledFilter));
  Unlock(g_session.heap_filter_memory.load(), SampledFilter::kMoreBytes);
  const SessionMemory* memory = g_session.memory.load(std::memory_order_acquire);
  if (memory == nullptr)
    return;
  UnlockShared(memory->engine, sizeof(EngineBlock));
  UnlockShared(memory->client, memory->client_size);
  if (const ClientTables* tables = SessionMemory::TablesOf(*memory))
    UnlockShared(tables, sizeof(ClientTables));
}

void ForgetFilters() {
  Wipe(&g_wiped.filter, sizeof(g_wiped.filter));
  Wipe(g_session.filter_memory.load(), SampledFilter::kMoreBytes);
  Wipe(g_session.heap_filter.load(), sizeof(SampledFilter));
  Wipe(g_session.heap_filter_memory.load(), SampledFilter::kMoreBytes);
}

}  // namespace heapprofd
