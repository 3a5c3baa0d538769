// libheapprofd_client: the functions of heapprofd/heap_profile.h.
//
// Who records is found once: the preload library when it is in the process, so that there
// is one session with one ring; else this library's own core, which also works in
// statically linked programs. While nobody records, a call is one load and one branch;
// stacks are taken from the caller's registers as in the malloc hooks.
#include <heapprofd/heap_profile.h>

#include "client/library/heap_registry.h"
#include "client/slow_entry.h"
#include "rt/compiler.h"

namespace heapprofd {

static_assert(HEAPPROFD_HEAP_NAME_SZ == kHeapNameSize);

const bool g_hooks_malloc = false;

// No allocator has to be found before a session can begin.
bool PrepareShell() {
  return true;
}

namespace {

bool Report(uint32_t heap_id, HeapEvent event, const CallSite& site) {
  event.block.heap_id = RecordedAs(heap_id);
  if (event.block.heap_id == 0) {
    if (!SettleIfChanged())
      return false;
    event.block.heap_id = RecordedAs(heap_id);
    if (event.block.heap_id == 0)
      return false;
  }
  event.session = g_settled_session.load(std::memory_order_relaxed);
  const ReportOutcome outcome = g_recorder->report_allocation(event, site);
  if (HPD_UNLIKELY(outcome == ReportOutcome::kOtherSession))
    Settle();
  return outcome == ReportOutcome::kRecorded;
}

HPD_NOINLINE void ReportFree(uint32_t heap_id, uint64_t alloc_id) {
  if (const uint8_t id = RecordedAs(heap_id))
    g_recorder->report_free({.address = alloc_id, .heap_id = id});
}

// Something is recorded in this process.
bool IsRecording() {
  if (IsOff())
    return false;
  SettleIfChanged();
  return g_settled_session.load(std::memory_order_relaxed) != 0;
}

}  // namespace
}  // namespace heapprofd

using heapprofd::g_recorder;
using heapprofd::IsOff;
using heapprofd::IsRecording;

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

HPD_SLOW_ENTRY(HpdReportAllocationEntry, HpdReportAllocationSlow, 3);
HPD_SLOW_ENTRY(HpdReportSampleEntry, HpdReportSampleSlow, 3);
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
  return heapprofd::AddHeap(heap_name);
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
  return info != nullptr ? heapprofd::RegisterHeap(*info) : 0;
}

uint32_t heapprofd_nested_begin(uint32_t heap_id) {
  if (!IsRecording())
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

// Whether recorded or not: a session that begins later finds the labels there.
void heapprofd_label_push(const char* key, const char* value) {
  if (key == nullptr || value == nullptr)
    return;
  heapprofd::Start();
  g_recorder->push_label(key, value);
}

void heapprofd_label_pop(void) {
  heapprofd::Start();
  g_recorder->pop_label();
}

void heapprofd_mark(const char* name) {
  if (name != nullptr && IsRecording())
    g_recorder->report_mark(heapprofd::RecordType::kMark, name);
}

void heapprofd_dump_now(void) {
  if (IsRecording())
    g_recorder->report_mark(heapprofd::RecordType::kDumpNow, "");
}

}  // extern "C"

namespace {

// Joins a session from the first moment on, and finds the services.
__attribute__((constructor)) void StartClient() {
  heapprofd::Start();
}

// What this library's own core has recorded must be read while the modules are there; the
// preload library does the same for itself.
__attribute__((destructor)) void EndClient() {
  heapprofd::StopWatching();
  heapprofd::WaitUntilDrained();
}

}  // namespace

// Where other copies of this library find this one: see client/recorder_table.h.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" HPD_EXPORT const heapprofd::RecorderTable* heapprofd_recorder_v2() {
  return &heapprofd::OwnRecorder();
}
