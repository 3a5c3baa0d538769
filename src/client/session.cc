#include "client/session.h"

#include <sys/mman.h>
#include <time.h>

#include "client/handshake_client.h"
#include "client/sampler.h"
#include "client/service_client.h"
#include "rt/compiler.h"
#include "rt/syscall.h"

namespace heapprofd {

constinit WipedOnFork g_wiped{};
constinit Session g_session{};

namespace {

// Threads start with this slot, and keep it while there is none for them: bytes_left is 0
// for ever.
ThreadSlot g_no_slot;

// Shared by threads beyond kMaxThreadSlots: counted nowhere, never sampled.
ThreadSlot g_orphan_slot = {UINT64_MAX / 2, 0, UINT64_MAX / 2, 0, 0, 1, 0, 0, 0};

}  // namespace

#ifdef HPD_FLAT_CLIENT
ThreadSlot* FirstSlot() {
  return &g_no_slot;
}

ThreadSlot* OrphanSlot() {
  return &g_orphan_slot;
}
#else
constinit thread_local ThreadSlot* t_slot = &g_no_slot;
#endif

namespace {

bool WipeOnFork() {
  return !rt::IsError(
      rt::Syscall(SYS_madvise, rt::ToArg(&g_wiped), sizeof(g_wiped), MADV_WIPEONFORK));
}

void InitializeSlot(ThreadSlot& slot, uint64_t index) {
  slot.random = (g_session.seed ^ rt::ReadTsc() ^ (index + 1) * 0x9e3779b97f4a7c15u) | 1;
  NextRandom(&slot.random);
  RestartCountdown(slot,
                   g_session.engine->control.interval.load(std::memory_order_relaxed));
}

// The slot that an earlier thread with this control block left, or a fresh one.
ThreadSlot* ClaimSlot(uint64_t thread_pointer) {
  RingHeader& header = g_session.client->ring;
  ThreadSlot* slots = g_session.client->slots;
  uint32_t count = header.slot_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < count && i < kMaxThreadSlots; ++i) {
    if (slots[i].thread_pointer.load(std::memory_order_acquire) == thread_pointer)
      return &slots[i];
  }
  do {
    if (count >= kMaxThreadSlots) {
      header.threads_without_slot.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
  } while (!header.slot_count.compare_exchange_weak(count, count + 1,
                                                    std::memory_order_acq_rel));
  InitializeSlot(slots[count], count);
  slots[count].thread_pointer.store(thread_pointer, std::memory_order_release);
  return &slots[count];
}

ThreadSlot* AttachThread() {
  const uint64_t thread_pointer = rt::ThreadPointer();
  ThreadSlot* slot = ClaimSlot(thread_pointer);
  if (slot == nullptr) {
    t_slot = &g_orphan_slot;
    return nullptr;
  }
  slot->thread_id = g_session.layout.ThreadId(thread_pointer);
  t_slot = slot;
  return slot;
}

void BecomeActive() {
  g_session.state.store(SessionState::kActive, std::memory_order_release);
  g_wiped.active.store(1, std::memory_order_release);
}

void BecomeDormant() {
  g_session.state.store(SessionState::kDormant, std::memory_order_release);
  g_wiped.active.store(0, std::memory_order_release);
}

HPD_COLD void Initialize() {
  SessionState expected = SessionState::kUninitialized;
  if (!g_session.state.compare_exchange_strong(expected, SessionState::kInitializing)) {
    while (g_session.state.load(std::memory_order_acquire) == SessionState::kInitializing)
      rt::Syscall(SYS_sched_yield);
    return;
  }
  if (!PrepareShell())
    __builtin_trap();  // no allocator behind us: the program could not have run without
                       // us either
  const int pid = static_cast<int>(rt::Syscall(SYS_getpid));
  const bool has_variable = ReadSessionVariable(g_session);
  if (!has_variable)
    OpenServicePlaces();
  const bool may_be_target =
      !has_variable || g_session.only_pid == 0 || g_session.only_pid == pid;
  if (may_be_target && WipeOnFork()) {
    if (rt::Syscall(SYS_gettid) == pid)
      g_session.layout.Discover(rt::ThreadPointer(), pid);
    const bool is_connected =
        has_variable ? Connect(g_session, ClientOrigin::kStartup)
                     : JoinService(/*was_dormant=*/false) || WaitForService();
    if (is_connected) {
      BecomeActive();
      return;
    }
  }
  BecomeDormant();
}

// The next engine has not been told of any.
void ForgetStacks() {
  for (std::atomic<uint64_t>& hash : g_session.known_stacks)
    hash.store(0, std::memory_order_relaxed);
  g_session.frames_end.store(0, std::memory_order_relaxed);
}

// Between two sessions. The addresses that the last one sampled mean nothing to the next.
// Memos belong to slots, which no two sessions share, so they look after themselves.
void ForgetSession() {
  Retire(g_session);
  for (SampledFilter* filter : {&g_wiped.filter, &g_wiped.heap_filter})
    rt::Syscall(SYS_madvise, rt::ToArg(filter), sizeof(*filter), MADV_DONTNEED);
  ForgetStacks();
}

// A service has begun a session since it was asked last.
HPD_COLD void WakeUp() {
  SessionState expected = SessionState::kDormant;
  if (!g_session.state.compare_exchange_strong(expected, SessionState::kWaking))
    return;
  ForgetSession();
  if (JoinService(/*was_dormant=*/true))
    BecomeActive();
  else
    BecomeDormant();
}

// Slots of earlier sessions are left behind when a program is profiled again.
bool IsSlotOfSession(const ThreadSlot* slot) {
  const ThreadSlot* slots = g_session.client->slots;
  if (HPD_LIKELY(slot >= slots && slot < slots + kMaxThreadSlots))
    return true;
  return slot == &g_session.pending_slot &&
         g_session.state.load(std::memory_order_acquire) == SessionState::kForkPending;
}

// First hook of a forked child. It has one thread; whatever it records belongs to a
// session of its own.
HPD_COLD void HandleFork() {
  if (g_session.only_pid != 0) {
#ifdef HPD_FLAT_CLIENT  // the engine comes, if it wants
    g_session.client->ring.forks.fetch_add(1, std::memory_order_relaxed);
#endif
    BecomeDormant();
    return;
  }
  g_session.seed ^= rt::ReadTsc();
  ThreadSlot& slot = g_session.pending_slot;
  slot.calls = 0;
  slot.granted = 0;
  slot.bytes_left = 0;
  InitializeSlot(slot, 0);
  t_slot = &slot;
  g_session.state.store(SessionState::kForkPending, std::memory_order_release);
  g_wiped.active.store(1, std::memory_order_release);
}

}  // namespace

ThreadSlot* EnterSession() {
  if (HPD_UNLIKELY(g_wiped.active.load(std::memory_order_acquire) == 0)) {
    switch (g_session.state.load(std::memory_order_acquire)) {
      case SessionState::kUninitialized:
      case SessionState::kInitializing:
        Initialize();
        break;
      case SessionState::kActive:
      case SessionState::kForkPending:
        HandleFork();
        break;
      case SessionState::kWaking:
        return nullptr;
      case SessionState::kDormant:
        if (HPD_LIKELY(!IsWoken()))
          return nullptr;
        WakeUp();
        break;
    }
    if (g_wiped.active.load(std::memory_order_acquire) == 0)
      return nullptr;
  }
  if (IsSessionOver(g_session.engine->control)) {
    GoDormant(ClientError::kNone);
    return nullptr;
  }
  ThreadSlot* slot = t_slot;
  if (HPD_LIKELY(IsSlotOfSession(slot)))
    return slot;
  if (slot == &g_orphan_slot)
    return nullptr;
  if (g_session.state.load(std::memory_order_acquire) == SessionState::kForkPending)
    return LeaveForkPending(
        nullptr);  // a second thread in the child: no longer a plain fork + exec
  return AttachThread();
}

HPD_COLD ThreadSlot* LeaveForkPending(ThreadSlot* pending) {
  SessionState expected = SessionState::kForkPending;
  if (!g_session.state.compare_exchange_strong(expected, SessionState::kInitializing))
    return nullptr;  // another thread is at it
  Unmap(g_session);
  if (!Connect(g_session, ClientOrigin::kForkChild)) {
    BecomeDormant();
    return nullptr;
  }
  ForgetStacks();
  for (StackMemo& memo : g_session.memos)
    memo.Forget();
  g_session.state.store(SessionState::kActive, std::memory_order_release);
  ThreadSlot* slot = AttachThread();
  if (slot != nullptr && pending != nullptr) {
    slot->calls += pending->calls;
    slot->granted += pending->granted - pending->bytes_left;
  }
  return slot;
}

void GoDormant(ClientError error) {
  if (g_session.state.load(std::memory_order_acquire) == SessionState::kDormant)
    return;
  if (g_session.state.load(std::memory_order_acquire) == SessionState::kActive) {
    g_session.client->ring.client_error.store(static_cast<uint32_t>(error),
                                              std::memory_order_relaxed);
    g_session.client->ring.client_dormant.store(1, std::memory_order_release);
  }
  BecomeDormant();
}

void WaitUntilDrained() {
  if (g_wiped.active.load(std::memory_order_acquire) == 0 ||
      g_session.state.load(std::memory_order_acquire) != SessionState::kActive)
    return;
  RingHeader& header = g_session.client->ring;
  const uint64_t written = g_session.frames_end.load(std::memory_order_acquire);
  constexpr int kTries = 5000;
  const timespec pause{.tv_sec = 0, .tv_nsec = 200'000};
  for (int i = 0; i < kTries; ++i) {
    if (header.consumed_position.load(std::memory_order_acquire) >= written ||
        g_session.engine->control.active.load(std::memory_order_relaxed) == 0)
      return;
    rt::Syscall(SYS_nanosleep, rt::ToArg(&pause));
  }
}

}  // namespace heapprofd
