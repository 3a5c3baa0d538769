// The client's session in one process: how it begins, how it survives fork, how it ends.
//
//   kUninitialized -first hook-> kInitializing -Welcome-> kActive -over-> kDormant
//   kInitializing -no engine, declined-> kDormant
//   kActive -fork, in the child-> kForkPending -first sample-> kJoining
//   kJoining -Welcome-> kActive (own session), -declined-> kDormant
//   kJoining -the engine cannot be asked-> kForkPending, for good
//   kForkPending -not followed-> kDormant
//   kActive -over-> kChanging -> kDormant
//   kDormant -a service has begun a session-> kChanging
//   (client/engine_link/service_client.h) kChanging -Welcome-> kActive, -declined->
//   kDormant
//
// A forked child finds the wiped word zero at its first hook: it must not touch the
// parent's ring. It counts in a slot of its own there (client/forked_child.h) and asks
// for a session of its own only when it has something to record, so that the usual fork +
// exec costs nothing; one of an attached process waits for the engine to bring it.
// Whether the parent's session goes on meanwhile is no concern of the child's.
#pragma once

#include <atomic>
#include <cstdint>

#include "client/filter.h"
#ifdef HPD_FLAT_CLIENT
#include "client/image/flat_threads.h"
#endif
#include "client/join_claim.h"
#include "client/stack.h"
#include "wire/client_tables.h"
#include "wire/ring_writer.h"
#include "wire/shared_memory.h"

namespace heapprofd {

enum class SessionState : uint32_t {
  kUninitialized,
  kInitializing,
  kChanging,  // one thread ends a session or asks for one; the others go on meanwhile
  kActive,
  kForkPending,
  kJoining,  // a forked child asks the engine; its other threads wait
  kDormant,
};

// Memory that a forked child finds zeroed (MADV_WIPEONFORK).
struct alignas(kPageSize) WipedOnFork {
  std::atomic<uint32_t> active;             // 1: hooks may use their slot
  std::atomic<uint32_t> own_files;          // kHasOwnFiles (wire/attached_client.h)
  std::atomic<uint64_t> memos_in_use;       // one bit per StackMemo
  alignas(kPageSize) SampledFilter filter;  // malloc's blocks
};

inline constexpr unsigned kMemos = 64;
inline constexpr unsigned kOwnMemos = 4;  // the others are spare memory
inline constexpr size_t kKnownStacks = size_t{1} << 13;

// What a session shares with its engine. Never changed and never given back: a thread
// that is late with a record must find it whole.
struct SessionMemory {
  const EngineBlock* engine;
  ClientBlock* client;
  uint64_t client_size;  // mapped bytes, without the tables
  uint64_t seed;
  RingWriter ring;
  ClientTables* tables;  // nullptr: not mapped yet; read by TablesOf

  // Any thread.
  static ClientTables* TablesOf(const SessionMemory& memory) {
    return __atomic_load_n(&memory.tables, __ATOMIC_ACQUIRE);
  }
};

// On pages of its own, which are not in the program's core dumps.
struct alignas(kPageSize) ClientSession {
  std::atomic<SessionState> state;
  std::atomic<SessionMemory*> memory;
  std::atomic<uint32_t> number;  // of the session in this process image, 1 the first
  ThreadLayout layout;
  int only_pid;  // profile this process only; 0: children too
  char socket_path[108];
  std::atomic<ClientBlock*> fork_block;  // an ancestor's, where a forked child counts;
                                         // nullptr: it has a session, or never was one
  ForkSlot spare_fork_slot;  // for a child for which there is none in that block
  std::atomic<bool> is_fork_block_full;  // when a thread of this process looked there
  std::atomic<bool> is_out_of_reach;     // it has asked for a session and nobody heard it
  UnseenOpens unseen_opens;    // since the program began, for each session's RingHeader
  JoinClaim join;              // of the thread that asks for a session
  SessionMemory* left_memory;  // an ancestor's; other threads may still look at it
  std::atomic<uint64_t> frames_end;  // ring position behind the last record with frames
  std::atomic<uint64_t> known_stacks[kKnownStacks];  // hashes whose frames the engine has
  WalkHints hints;
  StackMemo memos[kOwnMemos];  // of MemoOf (spare_memory.h): threads share them, each
                               // sticks to one while nobody else uses it
  std::atomic<StackMemo*> more_memos;
  std::atomic<std::byte*> filter_memory;       // for the filter of malloc's blocks
  std::atomic<std::byte*> heap_filter_memory;  // for the other one
  std::atomic<SampledFilter*> heap_filter;  // blocks of all heaps but malloc's; nullptr:
                                            // there is no such heap
  std::atomic<bool> lacks_memory;           // there was none for one of these

  // Once there has been a session:
  const EngineBlock* engine() const { return current().engine; }

  ClientBlock* client() const { return current().client; }

  uint64_t seed() const { return current().seed; }

  RingWriter& ring() const { return current().ring; }

 private:
  SessionMemory& current() const { return *memory.load(std::memory_order_acquire); }
};

// The engine has ended the session, or is gone.
inline bool IsSessionOver(const SessionControl& control) {
  return control.active.load(std::memory_order_relaxed) == 0 ||
         (control.engine_lock[0].load(std::memory_order_relaxed) & kOwnerDied) != 0;
}

// What the library around this core needs before a session can begin; each library has
// its own. False: the process cannot go on.
bool PrepareShell();

// Whether the library around this core sees malloc's heap.
extern const bool g_hooks_malloc;

extern WipedOnFork g_wiped;
extern ClientSession g_session;

// Number of the session that records now, 0: none.
inline uint32_t OngoingSession() {
  if (g_wiped.active.load(std::memory_order_acquire) == 0)
    return 0;
  const SessionState state = g_session.state.load(std::memory_order_acquire);
  const bool is_over = state != SessionState::kForkPending &&
                       state != SessionState::kJoining &&
                       IsSessionOver(g_session.engine()->control);
  return is_over ? 0 : g_session.number.load(std::memory_order_relaxed);
}

// The same; begins a session that is still to begin.
uint32_t CurrentSession();

// Slot of the calling thread, ready for use, or nullptr when nothing is recorded now.
// Starts the session at the first call, notices forks and the end of the session.
ThreadSlot* EnterSession();

// A forked child is about to record its first sample: asks the engine for its own
// session, unless another thread has. The calling thread's slot in it; nullptr: it has
// none, and the thread counts on where it does.
ThreadSlot* LeaveForkPending();

// Ends the session of that number, e.g. when the engine is lost; nothing when another one
// has begun since.
void GoDormant(uint32_t session, ClientError error);

// The calling thread's slot without any check, for the hooks' fast path; never nullptr:
// without a slot it is one whose bytes_left is 0, so the slow path is taken.
// Initial-exec: one load from the thread's own block.
#ifdef HPD_FLAT_CLIENT
// NOLINTNEXTLINE(readability-identifier-naming): it stands for a variable
inline constexpr FlatThreadVariable<ThreadSlot*, &FlatThread::slot> t_slot;

// What a thread's slot is before its first sample: takes the slow path.
ThreadSlot* FirstSlot();
// Slot of the threads for which there is none.
ThreadSlot* OrphanSlot();
#else
extern constinit thread_local ThreadSlot* t_slot
    __attribute__((tls_model("initial-exec")));
#endif

// Counts a call of the program.
void CountUnseenOpen(std::atomic<uint32_t> UnseenOpens::*kind);

// Waits until the engine has read all records that bring new frames, at most a second:
// afterwards modules may be unloaded or the process with its list of mappings may vanish.
void WaitUntilDrained();

}  // namespace heapprofd
