// libheapprofd_client: the functions of heapprofd/heap_profile.h.
//
// This library knows the program's heaps and their callbacks. Who records is found once:
// the preload library when it is in the process, so that there is one session with one
// ring; else this library's own core, which also works in statically linked programs.
// While nobody records, a call is one load and one branch; stacks are taken from the
// caller's registers as in the malloc hooks.
#include <atomic>

#include <heapprofd/heap_profile.h>

#include "client/loaded_objects.h"
#include "client/recorder_table.h"
#include "client/slow_entry.h"
#include "rt/compiler.h"
#include "rt/syscall.h"

struct AHeapProfileEnableCallbackInfo {
  uint64_t sampling_interval;
};

struct AHeapProfileDisableCallbackInfo {
  char reserved;  // C has no empty structs
};

struct AHeapInfo {
  char name[HEAPPROFD_HEAP_NAME_SZ];
  AHeapProfileEnableCallback enabled_callback;
  void* enabled_data;
  AHeapProfileDisableCallback disabled_callback;
  void* disabled_data;
  std::atomic<bool> is_registered;
  std::atomic<uint8_t> recorded_as;  // the recorder's id for it, 0: not recorded
};

namespace heapprofd {

// No allocator has to be found before a session can begin.
bool PrepareShell() {
  return true;
}

namespace {

static_assert(HEAPPROFD_HEAP_NAME_SZ == kHeapNameSize);

constinit AHeapInfo g_heaps[kMaxHeaps]{};  // by id; 0 stays unused
constinit std::atomic<uint32_t> g_heap_count{};

// All that a call looks at while nobody records.
constinit std::atomic<uint32_t> g_is_recording{};
constinit std::atomic<uint32_t> g_has_labels{};  // a label was pushed that must be popped

enum class StartState : uint32_t { kNotStarted, kStarting, kStarted };
constinit std::atomic<StartState> g_start{};
constinit const RecorderTable* g_recorder = nullptr;

const RecorderTable* FindRecorder() {
  for (const link_map* object = FirstObject(); object != nullptr;
       object = object->l_next) {
    if (void* function = FindFunction(*object, kRecorderFunction))
      return reinterpret_cast<const RecorderTable* (*)()>(function)();
  }
  return &OwnRecorder();
}

void Start() {
  StartState state = StartState::kNotStarted;
  if (!g_start.compare_exchange_strong(state, StartState::kStarting)) {
    while (g_start.load(std::memory_order_acquire) == StartState::kStarting)
      rt::Syscall(SYS_sched_yield);
    return;
  }
  g_recorder = FindRecorder();
  if (g_recorder->is_recording())
    g_is_recording.store(1, std::memory_order_release);
  g_start.store(StartState::kStarted, std::memory_order_release);
}

bool IsOff() {
  return HPD_LIKELY(g_is_recording.load(std::memory_order_relaxed) == 0);
}

void Enable(AHeapInfo& heap) {
  const uint8_t id = g_recorder->join_heap(heap.name);
  const uint64_t interval = id != 0 ? g_recorder->heap_interval(id) : 0;
  if (interval == 0)
    return;
  const AHeapProfileEnableCallbackInfo info{.sampling_interval = interval};
  if (heap.enabled_callback != nullptr)
    heap.enabled_callback(heap.enabled_data, &info);
  heap.recorded_as.store(id, std::memory_order_release);
}

// The session is over. Each heap's callback is called once, whoever notices first.
HPD_COLD void DisableAll(bool is_child) {
  g_is_recording.store(0, std::memory_order_relaxed);
  for (AHeapInfo& heap : g_heaps) {
    const bool was_recorded = heap.recorded_as.exchange(0) != 0;
    const AHeapProfileDisableCallbackInfo info{};
    if (was_recorded && !is_child && heap.disabled_callback != nullptr)
      heap.disabled_callback(heap.disabled_data, &info);
  }
}

// The recorder's id of a heap that is recorded, else 0.
uint8_t RecordedAs(uint32_t heap_id) {
  return heap_id < kMaxHeaps
             ? g_heaps[heap_id].recorded_as.load(std::memory_order_acquire)
             : uint8_t{0};
}

bool Report(uint32_t heap_id, const HeapEvent& event, const CallSite& site) {
  HeapEvent recorded = event;
  recorded.block.heap_id = RecordedAs(heap_id);
  if (recorded.block.heap_id == 0)
    return false;
  const ReportOutcome outcome = g_recorder->report_allocation(recorded, site);
  if (HPD_UNLIKELY(outcome >= ReportOutcome::kSessionOver))
    DisableAll(outcome == ReportOutcome::kSessionOverInChild);
  return outcome == ReportOutcome::kRecorded;
}

HPD_NOINLINE void ReportFree(uint32_t heap_id, uint64_t alloc_id) {
  if (const uint8_t id = RecordedAs(heap_id))
    g_recorder->report_free({.address = alloc_id, .heap_id = id});
}

}  // namespace
}  // namespace heapprofd

using heapprofd::g_has_labels;
using heapprofd::g_heaps;
using heapprofd::g_recorder;
using heapprofd::IsOff;

extern "C" {

__attribute__((visibility("hidden"), used)) bool HpdReportAllocationSlow(
    uint32_t heap_id, uint64_t alloc_id, uint64_t size, uint64_t stack, uint64_t bp) {
  return heapprofd::Report(heap_id, {.block = {.address = alloc_id}, .size = size},
                           {.stack = stack, .bp = bp});
}

__attribute__((visibility("hidden"), used)) bool HpdReportSampleSlow(
    uint32_t heap_id, uint64_t alloc_id, uint64_t size, uint64_t stack, uint64_t bp) {
  return heapprofd::Report(
      heap_id, {.block = {.address = alloc_id}, .size = size, .bypass_sampling = true},
      {.stack = stack, .bp = bp});
}

HPD_SLOW_ENTRY(HpdReportAllocationEntry, HpdReportAllocationSlow, rcx, r8);
HPD_SLOW_ENTRY(HpdReportSampleEntry, HpdReportSampleSlow, rcx, r8);
bool HpdReportAllocationEntry(uint32_t heap_id, uint64_t alloc_id, uint64_t size);
bool HpdReportSampleEntry(uint32_t heap_id, uint64_t alloc_id, uint64_t size);

bool AHeapProfile_reportAllocation(uint32_t heap_id, uint64_t alloc_id, uint64_t size) {
  return IsOff() ? false : HpdReportAllocationEntry(heap_id, alloc_id, size);
}

bool AHeapProfile_reportSample(uint32_t heap_id, uint64_t alloc_id, uint64_t size) {
  return IsOff() ? false : HpdReportSampleEntry(heap_id, alloc_id, size);
}

void AHeapProfile_reportFree(uint32_t heap_id, uint64_t alloc_id) {
  if (!IsOff())
    heapprofd::ReportFree(heap_id, alloc_id);
}

AHeapInfo* AHeapInfo_create(const char* heap_name) {
  size_t length = 0;
  while (heap_name != nullptr && length < HEAPPROFD_HEAP_NAME_SZ &&
         heap_name[length] != 0)
    ++length;
  if (length == 0 || length >= HEAPPROFD_HEAP_NAME_SZ)
    return nullptr;
  uint32_t count = heapprofd::g_heap_count.load(std::memory_order_relaxed);
  do {
    if (count + 1 >= heapprofd::kMaxHeaps)
      return nullptr;
  } while (!heapprofd::g_heap_count.compare_exchange_weak(count, count + 1));
  AHeapInfo* info = &g_heaps[count + 1];
  for (size_t i = 0; i < length; ++i)
    info->name[i] = heap_name[i];
  return info;
}

AHeapInfo* AHeapInfo_setEnabledCallback(AHeapInfo* info,
                                        AHeapProfileEnableCallback callback,
                                        void* data) {
  if (info == nullptr || info->is_registered.load())
    return nullptr;
  info->enabled_callback = callback;
  info->enabled_data = data;
  return info;
}

AHeapInfo* AHeapInfo_setDisabledCallback(AHeapInfo* info,
                                         AHeapProfileDisableCallback callback,
                                         void* data) {
  if (info == nullptr || info->is_registered.load())
    return nullptr;
  info->disabled_callback = callback;
  info->disabled_data = data;
  return info;
}

uint64_t AHeapProfileEnableCallbackInfo_getSamplingInterval(
    const AHeapProfileEnableCallbackInfo* info) {
  return info->sampling_interval;
}

uint32_t AHeapProfile_registerHeap(AHeapInfo* info) {
  if (info == nullptr)
    return 0;
  const auto id = static_cast<uint32_t>(info - g_heaps);
  if (info->is_registered.exchange(true))
    return id;
  heapprofd::Start();
  if (!IsOff())
    heapprofd::Enable(*info);
  return id;
}

uint32_t heapprofd_nested_begin(uint32_t heap_id) {
  if (IsOff())
    return 0;
  const uint8_t id = heapprofd::RecordedAs(heap_id);
  if (id == 0)
    return 0;
  g_recorder->begin_nested(id);
  return 1;
}

void heapprofd_nested_end(uint32_t scope) {
  if (scope != 0)
    g_recorder->end_nested();
}

void heapprofd_label_push(const char* key, const char* value) {
  if (IsOff() || key == nullptr || value == nullptr)
    return;
  g_has_labels.store(1, std::memory_order_relaxed);
  g_recorder->push_label(key, value);
}

void heapprofd_label_pop(void) {
  if (HPD_UNLIKELY(g_has_labels.load(std::memory_order_relaxed) != 0))
    g_recorder->pop_label();
}

void heapprofd_mark(const char* name) {
  if (!IsOff() && name != nullptr)
    g_recorder->report_mark(heapprofd::RecordType::kMark, name);
}

void heapprofd_dump_now(void) {
  if (!IsOff())
    g_recorder->report_mark(heapprofd::RecordType::kDumpNow, "");
}

}  // extern "C"

namespace {

// For programs that only set labels and marks: registerHeap starts by itself.
__attribute__((constructor)) void StartClient() {
  heapprofd::Start();
}

// What this library's own core has recorded must be read while the modules are there; the
// preload library does the same for itself.
__attribute__((destructor)) void EndClient() {
  heapprofd::WaitUntilDrained();
}

}  // namespace
