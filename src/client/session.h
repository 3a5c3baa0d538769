// The client's session in one process: how it begins, how it survives fork, how it ends.
//
//   kUninitialized ──first hook──▶ kInitializing ──Welcome──▶ kActive ──engine ends or is
//   lost──▶ kDormant
//                                       │                        │ ▲ └──no engine,
//                                       declined───┼───────────────────────────────────┤
//                                                            fork │ │
//                                                                 ▼ │
//                                                           kForkPending ──not followed,
//                                                           declined─────┘
//                                                                 └──first sample──▶
//                                                                 kActive (own session)
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
  kActive,
  kForkPending,
  kDormant,
};

// Memory that a forked child finds zeroed (MADV_WIPEONFORK).
struct alignas(kPageSize) WipedOnFork {
  std::atomic<uint32_t> active;        // 1: hooks may use their slot
  std::atomic<uint64_t> memos_in_use;  // one bit per StackMemo
  alignas(kPageSize) SampledFilter filter;
};

inline constexpr unsigned kMemos = 64;
inline constexpr size_t kKnownStacks = size_t{1} << 15;

struct Session {
  std::atomic<SessionState> state;
  const EngineBlock* engine;
  ClientBlock* client;
  RingWriter ring;
  ThreadLayout layout;
  uint64_t mapped_client_size;
  uint64_t seed;
  int only_pid;  // profile this process only; 0: children too
  char socket_path[108];
  ThreadSlot pending_slot;  // of a forked child without a session yet
  std::atomic<uint64_t> known_stacks[kKnownStacks];  // hashes whose frames the engine has
  StackMemo
      memos[kMemos];  // threads share them, each sticks to one while nobody else uses it
};

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

// Waits until the engine has read everything, at most a second: afterwards modules may be
// unloaded or the process with its list of mappings may vanish.
void WaitUntilDrained();

}  // namespace heapprofd
