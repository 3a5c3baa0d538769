// The client's session in one process: how it begins, how it survives fork, how it ends.
//
//   kUninitialized -first hook-> kInitializing -Welcome-> kActive -over-> kDormant
//   kInitializing -no engine, declined-> kDormant
//   kActive -fork, in the child-> kForkPending -first sample-> kActive (own session)
//   kForkPending -not followed, declined-> kDormant
//   kDormant -a service has begun a session-> kWaking (client/service_client.h)
//   kWaking -Welcome-> kActive, -declined-> kDormant
//
// A forked child finds the wiped word zero at its first hook: it must not touch the
// parent's ring. It counts on privately and asks for a session of its own only when it
// has something to record, so that the usual fork + exec costs nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "client/filter.h"
#ifdef HPD_FLAT_CLIENT
#include "client/flat_threads.h"
#endif
#include "client/stack.h"
#include "wire/ring_writer.h"
#include "wire/shared_memory.h"

namespace heapprofd {

enum class SessionState : uint32_t {
  kUninitialized,
  kInitializing,
  kWaking,  // a dormant program asks a service; its other threads go on meanwhile
  kActive,
  kForkPending,
  kDormant,
};

// Memory that a forked child finds zeroed (MADV_WIPEONFORK).
struct alignas(kPageSize) WipedOnFork {
  std::atomic<uint32_t> active;                  // 1: hooks may use their slot
  std::atomic<uint64_t> memos_in_use;            // one bit per StackMemo
  alignas(kPageSize) SampledFilter filter;       // malloc's blocks
  alignas(kPageSize) SampledFilter heap_filter;  // those of all other heaps
};

inline constexpr unsigned kMemos = 64;
inline constexpr size_t kKnownStacks = size_t{1} << 13;

struct Session {
  std::atomic<SessionState> state;
  const EngineBlock* engine;
  ClientBlock* client;
  RingWriter rings[2];  // the one in use, and the one of the session before
  std::atomic<RingWriter*> ring_in_use;
  ThreadLayout layout;
  uint64_t mapped_client_size;
  uint64_t seed;
  int only_pid;  // profile this process only; 0: children too
  char socket_path[108];
  ThreadSlot pending_slot;           // of a forked child without a session yet
  std::atomic<uint64_t> frames_end;  // ring position behind the last record with frames
  std::atomic<uint64_t> known_stacks[kKnownStacks];  // hashes whose frames the engine has
  StackMemo
      memos[kMemos];  // threads share them, each sticks to one while nobody else uses it

  RingWriter& ring() { return *ring_in_use.load(std::memory_order_relaxed); }

  // A thread that still writes to the session before must find a whole RingWriter.
  void UseRing(const RingWriter& ring) {
    RingWriter* next =
        ring_in_use.load(std::memory_order_relaxed) == &rings[0] ? &rings[1] : &rings[0];
    *next = ring;
    ring_in_use.store(next, std::memory_order_release);
  }
};

// The engine has ended the session, or is gone.
inline bool IsSessionOver(const SessionControl& control) {
  return control.active.load(std::memory_order_relaxed) == 0 ||
         (control.engine_lock[0].load(std::memory_order_relaxed) & kOwnerDied) != 0;
}

// What the library around this core needs before a session can begin; each library has
// its own. False: the process cannot go on.
bool PrepareShell();

extern WipedOnFork g_wiped;
extern Session g_session;

// Slot of the calling thread, ready for use, or nullptr when nothing is recorded now.
// Starts the session at the first call, notices forks and the end of the session.
ThreadSlot* EnterSession();

// A forked child is about to record its first sample: asks the engine for its own
// session. nullptr: declined.
ThreadSlot* LeaveForkPending(ThreadSlot* pending);

// Gives up for good, e.g. when the engine is lost.
void GoDormant(ClientError error);

// The calling thread's slot without any check, for the hooks' fast path; never nullptr:
// without a slot it is one whose bytes_left is 0, so the slow path is taken.
// Initial-exec: one load from the thread's own block.
#ifdef HPD_FLAT_CLIENT
inline constexpr FlatThreadVariable<ThreadSlot*, &FlatThread::slot> t_slot;

// What a thread's slot is before its first sample: takes the slow path.
ThreadSlot* FirstSlot();
// Slot of the threads for which there is none.
ThreadSlot* OrphanSlot();
#else
extern constinit thread_local ThreadSlot* t_slot
    __attribute__((tls_model("initial-exec")));
#endif

// Waits until the engine has read all records that bring new frames, at most a second:
// afterwards modules may be unloaded or the process with its list of mappings may vanish.
void WaitUntilDrained();

}  // namespace heapprofd
