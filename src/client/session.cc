#include "client/session.h"

#include <linux/futex.h>
#include <sys/mman.h>

#include <climits>

#include "client/confinement.h"
#ifdef HPD_FLAT_CLIENT
#include "client/image/attach_image.h"
#endif
#include "client/engine_link/engine_wait.h"
#include "client/engine_link/handshake_client.h"
#include "client/engine_link/service_client.h"
#include "client/forked_child.h"
#include "client/own_memory.h"
#include "client/sampler.h"
#include "client/spare_memory.h"
#include "rt/compiler.h"
#include "rt/syscall.h"

namespace heapprofd {

constinit WipedOnFork g_wiped{};
constinit ClientSession g_session{};

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

bool PrepareOwnMemory() {
  LeaveOutOfCores(&g_wiped, sizeof(g_wiped));
  LeaveOutOfCores(&g_session, sizeof(g_session));
  return !rt::IsError(
      rt::Syscall(SYS_madvise, rt::ToArg(&g_wiped), sizeof(g_wiped), MADV_WIPEONFORK));
}

void InitializeSlot(ThreadSlot& slot, uint64_t index) {
  slot.random =
      (g_session.seed() ^ rt::ReadTsc() ^ (index + 1) * 0x9e3779b97f4a7c15u) | 1;
  NextRandom(&slot.random);
  RestartCountdown(slot,
                   g_session.engine()->control.interval.load(std::memory_order_relaxed));
}

// The slot that an earlier thread with this control block left, or a fresh one.
ThreadSlot* ClaimSlot(uint64_t thread_pointer) {
  RingHeader& header = g_session.client()->ring;
  ThreadSlot* slots = g_session.client()->slots;
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
  if (IsForkSlot(t_slot))  // what the forked child has counted so far
    TakeForkCounts(*t_slot, *slot);
  t_slot = slot;
  return slot;
}

// Whoever waits for a change (client/engine_link/session_watch.h) sees it.
void SetState(SessionState state) {
  g_session.state.store(state, std::memory_order_release);
#ifndef HPD_FLAT_CLIENT  // where nobody waits
  if (!IsConfined())
    rt::Syscall(SYS_futex, rt::ToArg(&g_session.state), FUTEX_WAKE_PRIVATE, INT_MAX);
#endif
}

void TellOpens(std::atomic<uint32_t> UnseenOpens::*kind) {
  (g_session.client()->ring.unseen_opens.*kind)
      .store((g_session.unseen_opens.*kind).load(std::memory_order_relaxed),
             std::memory_order_relaxed);
}

// Of the thread that has set kInitializing or kChanging, or a forked child's only one. No
// thread may ever see kActive or kJoining with the wiped word zero: that is what such a
// child looks like.
void BecomeActive() {
  RingHeader& header = g_session.client()->ring;
  header.lacks_malloc.store(g_hooks_malloc ? 0 : 1, std::memory_order_relaxed);
  TellOpens(&UnseenOpens::deepbind);
  TellOpens(&UnseenOpens::namespaces);
  g_wiped.active.store(1, std::memory_order_release);
  SetState(SessionState::kActive);
}

void BecomeDormant() {
  g_wiped.active.store(0);
  g_wiped.filter.Close();  // or every free would be reported to nobody
  SetState(SessionState::kDormant);
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
  if (IsProfilingForbidden()) {
    g_is_confined.store(1, std::memory_order_relaxed);
    BecomeDormant();
    return;
  }
  const int pid = static_cast<int>(rt::Syscall(SYS_getpid));
  const bool has_variable = ReadSessionVariable(g_session);
  if (!has_variable)
    OpenServicePlaces();
  const bool may_be_target =
      !has_variable || g_session.only_pid == 0 || g_session.only_pid == pid;
  if (may_be_target && PrepareOwnMemory()) {
    if (rt::Syscall(SYS_gettid) == pid)
      g_session.layout.Discover(rt::ThreadPointer(), pid);
    const bool is_connected =
        has_variable
            ? Connect(g_session, ClientOrigin::kStartup) == ConnectResult::kConnected
            : JoinService(/*was_dormant=*/false) || WaitForService();
    if (is_connected) {
      g_session.number.store(1, std::memory_order_relaxed);
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
  ForgetFilters();
  g_session.fork_block.store(nullptr, std::memory_order_relaxed);
  ForgetStacks();
}

// A service has begun a session since it was asked last.
HPD_COLD void WakeUp() {
  SessionState expected = SessionState::kDormant;
  if (!g_session.state.compare_exchange_strong(expected, SessionState::kChanging))
    return;
  ForgetSession();
  if (!JoinService(/*was_dormant=*/true))
    return BecomeDormant();
  g_session.number.fetch_add(1, std::memory_order_relaxed);
  BecomeActive();
}

// The next session may have begun before anybody here noticed that the last one is over.
// False as well while a thread ends that one, which may be this one, interrupted by a
// signal handler.
bool HasNextBegun() {
  return g_session.state.load(std::memory_order_acquire) == SessionState::kDormant &&
         IsWoken();
}

// Slots of earlier sessions are left behind when a program is profiled again.
bool IsSlotOfSession(const ThreadSlot* slot) {
  const ThreadSlot* slots = g_session.client()->slots;
  return slot >= slots && slot < slots + kMaxThreadSlots;
}

// The wiped word is zero in a session. But one that has begun or ended since the word was
// read looks like that for a moment: then something has changed.
bool IsForkedChild() {
  const uint32_t number = g_session.number.load(std::memory_order_acquire);
  const SessionState state = g_session.state.load(std::memory_order_acquire);
  return g_wiped.active.load(std::memory_order_acquire) == 0 &&
         g_session.state.load(std::memory_order_acquire) == state &&
         g_session.number.load(std::memory_order_acquire) == number &&
         state != SessionState::kChanging && state != SessionState::kDormant;
}

// The program's children are recorded, too. The engine of an attached process looks how
// many there were.
bool IsFollowed() {
#ifdef HPD_FLAT_CLIENT
  g_session.client()->ring.forks.fetch_add(1, std::memory_order_relaxed);
  ForgetThreads();  // of the parent
  return FollowsChildren();
#else
  return g_session.only_pid == 0;
#endif
}

// First hook of a forked child. It has one thread; whatever it records belongs to a
// session of its own.
HPD_COLD void HandleFork() {
  if (g_session.left_memory != nullptr && !IsConfined() && !IsForkSlot(t_slot)) {
    Unmap(g_session.left_memory);
    g_session.left_memory = nullptr;
  }
  if (!IsFollowed()) {
    if (!IsConfined())
      Retire(g_session);
    t_slot = &g_no_slot;
    BecomeDormant();
    return;
  }
  if (!kIsAttached && IsConfined())  // it is counted, and cannot be recorded
    CountUnprofiled(&RingHeader::confined_children, 1);
  t_slot = BeginCounting();
  g_session.is_out_of_reach.store(false, std::memory_order_relaxed);
  g_session.join.Release();
  g_session.state.store(SessionState::kForkPending, std::memory_order_release);
  g_wiped.active.store(1, std::memory_order_release);
}

}  // namespace

namespace {

// What other threads allocate meanwhile belongs into the session, too. False: the calling
// thread is the one that joins, interrupted by a signal handler.
HPD_COLD bool WaitForJoin() {
  while (true) {
    const JoinClaim::Holder holder = g_session.join.HolderFor(rt::ThreadPointer());
    if (holder != JoinClaim::Holder::kAnother)
      return holder == JoinClaim::Holder::kNobody;
#ifdef HPD_FLAT_CLIENT  // a filter may forbid the call, and it is over in no time
    rt::Pause();
#else
    rt::Syscall(SYS_sched_yield);
#endif
  }
}

// Whether a session of its own can be had now.
bool MayJoin() {
#ifdef HPD_FLAT_CLIENT
  return HasOwnFiles();
#else
  return !IsConfined() && (!g_session.is_out_of_reach.load(std::memory_order_relaxed) ||
                           IsSessionOver(g_session.engine()->control));
#endif
}

enum class JoinResult : uint8_t {
  kJoined,
  kOutOfReach,  // the session goes on, and this process cannot ask for its own
  kDeclined,
};

#ifndef HPD_FLAT_CLIENT
// It is counted, and cannot be recorded. Once: a process that could not ask does not try
// at each of its samples. Also where its parent's session is over: that may have ended
// with the parent alone, and then its memory is still read. Whoever was not answered in
// time is named by the engine, which sees that it has asked.
void StayOutOfReach(ConnectResult why) {
  const bool is_counted =
      g_session.is_out_of_reach.exchange(true, std::memory_order_relaxed);
  if (!is_counted && why != ConnectResult::kUnanswered)
    CountUnprofiled(why == ConnectResult::kUnreached
                        ? &RingHeader::unreached_children
                        : &RingHeader::children_without_descriptor,
                    1);
}
#endif

// Of the engine that the process must ask, or that has brought the files already.
JoinResult JoinOwnSession() {
#ifdef HPD_FLAT_CLIENT
  EndCounting();
  BeginOwnSession();
  return JoinResult::kJoined;
#else
  SessionMemory* parents_memory = g_session.memory.load(std::memory_order_relaxed);
  const ConnectResult result = Connect(g_session, ClientOrigin::kForkChild);
  const bool is_unheard = result == ConnectResult::kUnreached ||
                          result == ConnectResult::kNoDescriptor ||
                          result == ConnectResult::kUnanswered;
  if (is_unheard) {
    StayOutOfReach(result);
    if (!IsSessionOver(parents_memory->engine->control))
      return JoinResult::kOutOfReach;
  }
  const bool is_connected = result == ConnectResult::kConnected;
  if (is_connected) {
    EndCounting();
    g_session.left_memory = parents_memory;
  }
  RetireClient(*parents_memory);
  return is_connected ? JoinResult::kJoined : JoinResult::kDeclined;
#endif
}

// A second thread in the child: no longer a plain fork and exec. Or its parent's session
// is over: a service then says whether the child has one; if not, it lies dormant and the
// next session wakes it. Or its files are there.
HPD_COLD ThreadSlot* EnterForkPending() {
#ifdef HPD_FLAT_CLIENT
  if (MayJoin())
    return LeaveForkPending();
  const bool must_join = false;
#else
  const bool must_join =
      !IsForkSlot(t_slot) || (HasService() && IsSessionOver(g_session.engine()->control));
#endif
  if (must_join && MayJoin())
    return LeaveForkPending();
  if (IsForkSlot(t_slot))
    return t_slot;
  ThreadSlot* slot = ClaimForkSlot();
  if (slot != nullptr)
    t_slot = slot;
  return slot;
}

}  // namespace

ThreadSlot* EnterSession() {
  if (HPD_UNLIKELY(g_wiped.active.load(std::memory_order_acquire) == 0)) {
    switch (g_session.state.load(std::memory_order_acquire)) {
      case SessionState::kUninitialized:
      case SessionState::kInitializing:
        if constexpr (!kIsAttached)  // its setup begins a session, never a hook
          Initialize();
        break;
      case SessionState::kActive:
      case SessionState::kForkPending:
      case SessionState::kJoining:
        if (!IsForkedChild())
          return EnterSession();
        HandleFork();
        break;
      case SessionState::kChanging:
        return nullptr;
      case SessionState::kDormant:
        if (HPD_LIKELY(!IsWoken()) || IsConfined())
          return nullptr;
        if constexpr (!kIsAttached)
          WakeUp();
        break;
    }
    if (g_wiped.active.load(std::memory_order_acquire) == 0)
      return nullptr;
  }
  switch (g_session.state.load(std::memory_order_acquire)) {
    case SessionState::kJoining:
      return WaitForJoin() ? EnterSession() : nullptr;
    case SessionState::kForkPending:
      return EnterForkPending();
    default:
      break;
  }
  const uint32_t session = g_session.number.load(std::memory_order_acquire);
  if (IsSessionOver(g_session.engine()->control)) {
    GoDormant(session, ClientError::kNone);
    return HasNextBegun() ? EnterSession() : nullptr;
  }
  ThreadSlot* slot = t_slot;
  if (HPD_LIKELY(IsSlotOfSession(slot))) {
#ifdef HPD_FLAT_CLIENT  // an ended thread's, perhaps (client/image/flat_threads.h)
    slot->thread_id = g_session.layout.ThreadId(rt::ThreadPointer());
#endif
    return slot;
  }
  if (slot == &g_orphan_slot)
    return nullptr;
  return AttachThread();
}

void CountUnseenOpen(std::atomic<uint32_t> UnseenOpens::*kind) {
  (g_session.unseen_opens.*kind).fetch_add(1, std::memory_order_relaxed);
  if (EnterSession() != nullptr)
    TellOpens(kind);
}

uint32_t CurrentSession() {
  EnterSession();
  return OngoingSession();
}

// Other threads of the child may be anywhere in EnterSession and read the parent's
// parameters: these stay mapped until there is one thread only, in the next forked child.
HPD_COLD ThreadSlot* LeaveForkPending() {
  if (!MayJoin())
    return nullptr;
  switch (g_session.join.Take(rt::ThreadPointer())) {
    case JoinClaim::Holder::kThisThread:
      return nullptr;
    case JoinClaim::Holder::kAnother:
      return WaitForJoin() ? EnterSession() : nullptr;
    case JoinClaim::Holder::kNobody:
      break;
  }
  SessionState expected = SessionState::kForkPending;
  if (!g_session.state.compare_exchange_strong(expected, SessionState::kJoining)) {
    g_session.join.Release();
    return EnterSession();
  }
  const JoinResult result = JoinOwnSession();
  if (result == JoinResult::kOutOfReach) {
    g_session.state.store(SessionState::kForkPending, std::memory_order_release);
    g_session.join.Release();
    return nullptr;
  }
  if (result == JoinResult::kDeclined) {
    g_session.state.store(SessionState::kChanging, std::memory_order_release);
    BecomeDormant();
    g_session.join.Release();
    return nullptr;
  }
  ForgetStacks();
  ForgetMemos();
  BecomeActive();
  g_session.join.Release();
  return AttachThread();
}

void GoDormant(uint32_t session, ClientError error) {
  SessionState state = SessionState::kActive;
  if (g_session.number.load(std::memory_order_acquire) != session ||
      !g_session.state.compare_exchange_strong(state, SessionState::kChanging))
    return;  // another thread ends or begins a session
  // While the caller found it over, the next one may have begun.
  if (g_session.number.load(std::memory_order_acquire) != session)
    return SetState(SessionState::kActive);
  ClientBlock* client = g_session.client();
  BecomeDormant();
  client->ring.client_error.store(static_cast<uint32_t>(error),
                                  std::memory_order_relaxed);
  client->ring.client_dormant.store(1, std::memory_order_release);
}

void WaitUntilDrained() {
  if (g_wiped.active.load(std::memory_order_acquire) == 0 ||
      g_session.state.load(std::memory_order_acquire) != SessionState::kActive)
    return;
  RingHeader& header = g_session.client()->ring;
  const uint64_t written = g_session.frames_end.load(std::memory_order_acquire);
  constexpr uint64_t kLimitNs = 1'000'000'000;
  constexpr long kNapNs = 200'000;
  EngineWait wait(kLimitNs);
  while (header.consumed_position.load(std::memory_order_acquire) < written &&
         !IsSessionOver(g_session.engine()->control) && wait.MayGoOn())
    Nap(kNapNs);
}

}  // namespace heapprofd
