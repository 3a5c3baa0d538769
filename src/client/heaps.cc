#include "client/heaps.h"

#include <algorithm>
#include <atomic>

#include "client/engine_link/handshake_client.h"
#include "client/forked_child.h"
#include "client/heap_filter.h"
#include "client/nesting.h"
#include "client/own_memory.h"
#include "client/sampler.h"
#include "rt/compiler.h"
#include "rt/syscall.h"
#include "wire/records.h"

namespace heapprofd {
namespace {

enum class JoinState : uint32_t { kVacant, kBeingNamed, kNamed };

struct JoinedHeap {
  std::atomic<JoinState> state;
  std::atomic<uint64_t> interval;  // in the session that was asked last, before doubling
  char name[kHeapNameSize];
};

constinit JoinedHeap g_joined[kMaxHeaps]{};  // [0] is malloc's and stays vacant

constexpr uint64_t kSlotBeingMade = 1;  // no thread has this key
constexpr uint64_t kSlotProbes = 64;

bool HasName(JoinedHeap& heap, const char* name) {
  // Another thread names it just now; a forked child may wait for one that it lacks.
  for (int i = 0; i < 1000; ++i) {
    if (heap.state.load(std::memory_order_acquire) == JoinState::kNamed)
      return HeapNamesEqual(heap.name, name);
    rt::Syscall(SYS_sched_yield);
  }
  return false;
}

// Atomically, since several threads may publish the same name at once.
void CopyName(char* to, const char* name) {
  for (size_t i = 0; i + 1 < kHeapNameSize && name[i] != 0; ++i)
    __atomic_store_n(&to[i], name[i], __ATOMIC_RELAXED);
}

uint64_t LookUpInterval(uint8_t heap_id) {
  const uint64_t interval =
      HeapIntervalByName(g_session.engine()->heap_rules, g_joined[heap_id].name);
  g_joined[heap_id].interval.store(interval, std::memory_order_relaxed);
  return interval;
}

uint64_t InForce(uint64_t interval) {
  return IntervalInForce(g_session.engine()->heap_rules, interval);
}

// The name is published before the slot is: no sample of a heap without a name.
void PublishName(uint8_t heap_id) {
  ClientTables* tables = SessionTables();
  if (tables == nullptr)
    return;
  HeapEntry& entry = tables->heaps[heap_id];
  if (entry.is_set.load(std::memory_order_relaxed) != 0)
    return;
  CopyName(entry.name, g_joined[heap_id].name);
  entry.is_set.store(1, std::memory_order_release);
}

void InitializeHeapSlot(ThreadSlot& slot, uint64_t key, uint64_t interval) {
  slot.random = (g_session.seed() ^ rt::ReadTsc() ^ key * 0x9e3779b97f4a7c15u) | 1;
  NextRandom(&slot.random);
  RestartCountdown(slot, interval);
}

// nullptr: the heap is not recorded in this session, or there are too many threads.
HPD_COLD ThreadSlot* MakeHeapSlot(ThreadSlot& vacant, uint64_t key) {
  const uint8_t heap_id = HeapOfSlotKey(key);
  const uint64_t interval = InForce(LookUpInterval(heap_id));
  uint64_t none = 0;
  if (interval == 0 ||
      !vacant.thread_pointer.compare_exchange_strong(none, kSlotBeingMade))
    return nullptr;
  PublishName(heap_id);
  InitializeHeapSlot(vacant, key, interval);
  vacant.thread_pointer.store(key, std::memory_order_release);
  return &vacant;
}

ThreadSlot* HeapSlot(uint8_t heap_id) {
  const uint64_t key = HeapSlotKey(rt::ThreadPointer(), heap_id);
  const uint64_t hash = key * 0x9e3779b97f4a7c15u >> 32;
  ClientTables* tables = SessionTables();
  for (uint64_t i = 0; tables != nullptr && i < kSlotProbes; ++i) {
    ThreadSlot& slot = tables->heap_slots[(hash + i) % kMaxHeapSlots];
    const uint64_t owner = slot.thread_pointer.load(std::memory_order_acquire);
    if (HPD_LIKELY(owner == key))
      return &slot;
    if (owner == 0) {
      if (ThreadSlot* made = MakeHeapSlot(slot, key))
        return made;
      if (g_joined[heap_id].interval.load(std::memory_order_relaxed) == 0)
        return nullptr;
    }
  }
  g_session.client()->ring.reports_without_slot.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

// The calling thread's own slot, with a session of this very process.
ThreadSlot* EnterOwnSession() {
  ThreadSlot* slot = EnterSession();
  if (HPD_UNLIKELY(g_session.fork_block.load(std::memory_order_relaxed) != nullptr &&
                   IsForkSlot(slot)))
    slot = LeaveForkPending();
  return slot;
}

// Another session has other rules: its heaps are to be enabled first.
bool IsUnderWay(uint32_t session) {
  return OngoingSession() == session &&
         g_session.state.load(std::memory_order_relaxed) == SessionState::kActive;
}

// False: this allocation is not sampled. *interval is the one that decided.
bool DecideSample(ThreadSlot& slot, const HeapEvent& event, uint64_t* interval) {
  if (event.bypass_sampling) {
    ++slot.calls;
    slot.granted += event.size;
    *interval = 1;
    return event.size != 0;
  }
  if (HPD_LIKELY(event.size < slot.bytes_left)) {
    slot.bytes_left -= event.size;
    ++slot.calls;
    return false;
  }
  *interval = slot.interval;
  const uint64_t base =
      g_joined[event.block.heap_id].interval.load(std::memory_order_relaxed);
  return CountDown(slot, event.size, InForce(base)) == SampleDecision::kSample;
}

}  // namespace

uint8_t JoinHeap(const char* name) {
  if (MapOnce(g_session.heap_filter, sizeof(SampledFilter), OnFork::kWiped) == nullptr)
    return 0;
  for (size_t id = 1; id < kMaxHeaps; ++id) {
    JoinedHeap& heap = g_joined[id];
    JoinState state = JoinState::kVacant;
    if (heap.state.compare_exchange_strong(state, JoinState::kBeingNamed)) {
      CopyName(heap.name, name);
      heap.state.store(JoinState::kNamed, std::memory_order_release);
      return static_cast<uint8_t>(id);
    }
    if (HasName(heap, name))
      return static_cast<uint8_t>(id);
  }
  return 0;
}

uint64_t HeapInterval(uint8_t heap_id) {
  if (EnterOwnSession() == nullptr)
    return 0;
  PublishName(heap_id);  // recorded or not: the engine can then say what it leaves out
  return InForce(LookUpInterval(heap_id));
}

ReportOutcome ReportHeapAllocation(const HeapEvent& event, const CallSite& site) {
  if (IsNested(event.block.heap_id) || event.size > kMaxAllocation)
    return ReportOutcome::kNotRecorded;
  if (HPD_UNLIKELY(!IsUnderWay(event.session))) {
    if (CurrentSession() != event.session)
      return ReportOutcome::kOtherSession;
    if (EnterOwnSession() == nullptr)
      return ReportOutcome::kNotRecorded;
  }
  ReportHeapFree(event.block);  // a live block with this number was given up silently
  ThreadSlot* slot = HeapSlot(event.block.heap_id);
  uint64_t interval = 0;
  if (slot == nullptr || !DecideSample(*slot, event, &interval))
    return ReportOutcome::kNotRecorded;
  ThreadSlot* thread = EnterOwnSession();
  if (thread == nullptr)
    return ReportOutcome::kNotRecorded;
  RecordSample(
      *thread, event.block, event.size, interval,
      {.stack = site.stack,
       .bp = site.bp,
       .function = event.bypass_sampling ? AllocationFunction::kReportSample
                                         : AllocationFunction::kReportAllocation});
  return ReportOutcome::kRecorded;
}

void ReportHeapFree(const Block& block) {
  const uint64_t key = FilterKey(block);
  SampledFilter* filter = g_session.heap_filter.load(std::memory_order_acquire);
  if (filter != nullptr && HPD_UNLIKELY(filter->MayContain(key)) && filter->Remove(key))
    RecordFree(block, /*is_realloc=*/false);
}

void ReportMark(RecordType type, const char* name) {
  if (EnterOwnSession() != nullptr)
    RecordMark(type, name);
}

}  // namespace heapprofd
