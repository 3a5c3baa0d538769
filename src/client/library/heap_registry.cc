#include "client/library/heap_registry.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include <climits>

#include "client/loaded_objects.h"
#include "rt/syscall.h"

// A program may load the shared library without having threads; in a static program a
// weak reference would mean that nobody links them.
#ifdef HPD_WEAK_THREADS
#pragma weak pthread_create
#pragma weak pthread_join

static bool HasThreads() {
  return &pthread_create != nullptr;
}
#else
static bool HasThreads() {
  return true;
}
#endif

namespace heapprofd {

constinit AHeapInfo g_heaps[kMaxHeaps]{};
constinit SwitchPage g_switch{};
constinit const RecorderTable* g_recorder = nullptr;
constinit std::atomic<uint32_t> g_settled_session{};
constinit std::atomic<StartState> g_start{};

namespace {

// What a forked child finds zeroed: threads that were in the middle of it are not there.
struct alignas(kPageSize) WipedState {
  std::atomic<uint32_t> settle_requests;  // 0: nobody settles
  std::atomic<uint64_t> settled_by;       // thread pointer of who does
  std::atomic<uint32_t> has_watcher;
  std::atomic<uint32_t> stop_watching;  // a futex
  std::atomic<uint32_t> has_stopped;
  pthread_t watcher;
};

constinit WipedState g_state{};
constinit std::atomic<uint32_t> g_heap_count{};
bool g_is_switched_on = false;    // whoever settles
bool g_switch_covers_all = true;  // places where a service may be

void Pause(long nanoseconds) {
  const timespec pause{.tv_sec = 0, .tv_nsec = nanoseconds};
  rt::Syscall(SYS_nanosleep, rt::ToArg(&pause));
}

const RecorderTable* FindRecorder() {
  for (const link_map* object = FirstObject(); object != nullptr;
       object = object->l_next) {
    if (void* function = FindFunction(*object, kRecorderFunction))
      return reinterpret_cast<const RecorderTable* (*)()>(function)();
  }
  return &OwnRecorder();
}

void Enable(AHeapInfo& heap) {
  const uint8_t id = g_recorder->join_heap(heap.name);
  const uint64_t interval = id != 0 ? g_recorder->heap_interval(id) : 0;
  if (interval == 0)
    return;
  heap.enabled_in = rt::Syscall(SYS_getpid);
  const AHeapProfileEnableCallbackInfo info{.sampling_interval = interval};
  if (heap.enabled_callback != nullptr)
    heap.enabled_callback(heap.enabled_data, &info);
  heap.recorded_as.store(id, std::memory_order_release);
}

void Disable(AHeapInfo& heap) {
  const AHeapProfileDisableCallbackInfo info{};
  if (heap.recorded_as.exchange(0) != 0 && heap.disabled_callback != nullptr &&
      heap.enabled_in == rt::Syscall(SYS_getpid))
    heap.disabled_callback(heap.disabled_data, &info);
}

void SettleHeaps(uint32_t session) {
  const uint32_t count = g_heap_count.load(std::memory_order_acquire);
  for (uint32_t id = 1; id <= count; ++id) {
    AHeapInfo& heap = g_heaps[id];
    if (!heap.is_registered.load(std::memory_order_acquire) || heap.session == session)
      continue;
    if (heap.session != 0)
      Disable(heap);
    heap.session = session;
    if (session != 0)
      Enable(heap);
  }
}

// By whoever settles, alone.
void SettleOnce() {
  const uint32_t session = g_recorder->current_session();
  if (g_is_switched_on != (session != 0)) {
    g_is_switched_on = session != 0;
    g_recorder->set_switch(g_switch, g_is_switched_on);
  }
  g_settled_session.store(session, std::memory_order_release);
  SettleHeaps(session);
}

void* Watch(void* /*argument*/) {
  while (g_recorder->wait_for_session(g_settled_session.load(std::memory_order_acquire),
                                      g_state.stop_watching)) {
    if (g_state.settle_requests.load(std::memory_order_relaxed) != 0)
      Pause(1'000'000);  // another thread is at it
    else
      Settle();
  }
  g_state.has_stopped.store(1, std::memory_order_release);
  return nullptr;
}

// Heaps that want to be told are told although they report nothing, as is right for those
// that report only when enabled. The program's signals are not for this thread.
void StartWatching() {
  if (!HasThreads() || g_state.has_watcher.exchange(1) != 0)
    return;
  uint64_t all = ~uint64_t{0};
  uint64_t before = 0;
  rt::Syscall(SYS_rt_sigprocmask, 0, rt::ToArg(&all), rt::ToArg(&before), sizeof(all));
  g_recorder->begin_nested(
      0xff);  // what the thread takes from malloc is not the program's
  if (pthread_create(&g_state.watcher, nullptr, Watch, nullptr) != 0)
    g_state.has_stopped.store(2, std::memory_order_release);  // reports will notice
  g_recorder->end_nested();
  rt::Syscall(SYS_rt_sigprocmask, 2, rt::ToArg(&before), 0, sizeof(before));
}

// Another thread may settle just now, and the program wants its first report to count.
// Bounded: its callback may be waiting for us.
void WaitUntilSettled(const AHeapInfo& heap) {
  for (int i = 0; i < 1000; ++i) {
    if (g_state.settle_requests.load(std::memory_order_acquire) == 0 ||
        g_state.settled_by.load(std::memory_order_relaxed) == rt::ThreadPointer() ||
        heap.recorded_as.load(std::memory_order_acquire) != 0)
      return;
    Pause(1'000'000);
  }
}

}  // namespace

HPD_COLD void StartNow() {
  StartState state = StartState::kNotStarted;
  if (!g_start.compare_exchange_strong(state, StartState::kStarting)) {
    while (g_start.load(std::memory_order_acquire) == StartState::kStarting)
      rt::Syscall(SYS_sched_yield);
    return;
  }
  rt::Syscall(SYS_madvise, rt::ToArg(&g_state), sizeof(g_state), MADV_WIPEONFORK);
  g_recorder = FindRecorder();
  g_recorder->current_session();  // which finds the services
  g_switch_covers_all = g_recorder->set_switch(g_switch, /*is_on=*/false);
  g_start.store(StartState::kStarted, std::memory_order_release);
  Settle();
}

HPD_COLD void Settle() {
  if (g_state.settle_requests.fetch_add(1) != 0)
    return;  // whoever is at it looks again
  g_state.settled_by.store(rt::ThreadPointer(), std::memory_order_relaxed);
  uint32_t seen = 0;
  do {
    seen = g_state.settle_requests.load(std::memory_order_acquire);
    SettleOnce();
  } while (!g_state.settle_requests.compare_exchange_strong(seen, 0));
}

AHeapInfo* AddHeap(const char* name) {
  size_t length = 0;
  while (name != nullptr && length < HEAPPROFD_HEAP_NAME_SZ && name[length] != 0)
    ++length;
  if (length == 0 || length >= HEAPPROFD_HEAP_NAME_SZ)
    return nullptr;
  uint32_t count = g_heap_count.load(std::memory_order_relaxed);
  do {
    if (count + 1 >= kMaxHeaps)
      return nullptr;
  } while (!g_heap_count.compare_exchange_weak(count, count + 1));
  AHeapInfo* info = &g_heaps[count + 1];
  for (size_t i = 0; i < length; ++i)
    info->name[i] = name[i];
  return info;
}

uint32_t RegisterHeap(AHeapInfo& heap) {
  const auto id = static_cast<uint32_t>(&heap - g_heaps);
  if (heap.is_registered.exchange(true))
    return id;
  Start();
  if (heap.enabled_callback != nullptr || heap.disabled_callback != nullptr ||
      !g_switch_covers_all)
    StartWatching();
  if (!IsOff()) {
    Settle();
    WaitUntilSettled(heap);
  }
  return id;
}

void StopWatching() {
  if (g_state.has_watcher.load(std::memory_order_acquire) == 0)
    return;
  g_state.stop_watching.store(1, std::memory_order_release);
  rt::Syscall(SYS_futex, rt::ToArg(&g_state.stop_watching), FUTEX_WAKE_PRIVATE, INT_MAX);
  // It may be in a callback that does not return.
  for (int i = 0; i < 1000; ++i) {
    const uint32_t has_stopped = g_state.has_stopped.load(std::memory_order_acquire);
    if (has_stopped == 1)
      pthread_join(g_state.watcher, nullptr);
    if (has_stopped != 0)
      return;
    Pause(1'000'000);
  }
}

}  // namespace heapprofd
