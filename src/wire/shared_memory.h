// The two memory files that client and engine share.
//
//   EngineBlock   written by the engine, mapped read-only by the client: session
//                 parameters, rules
//   ClientBlock   written by the client: ring positions, thread slots, and behind it
//                 the ring's bytes
//
// Both are sealed against resizing, so neither side can take pages away from the other.
// The engine treats everything in the ClientBlock as hostile: it reads positions and
// counters once and bounds them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rt/machine.h"
#include "walk/rule_table.h"
#include "wire/heaps.h"

namespace heapprofd {

// What is mapped or advised on its own begins on, and has multiples of, so many bytes.
inline constexpr size_t kPageSize = rt::kLargestPage;
inline constexpr size_t kMaxThreadSlots = 4096;
inline constexpr size_t kMaxStackRegions = 1024;
inline constexpr size_t kMaxHeapSlots = 16384;  // a power of two
inline constexpr size_t kMaxForkSlots = 4096;

enum class WhenFull : uint32_t {
  kDrop = 0,
  kBlock = 1,
};

// Session parameters. The engine may change them at any time.
struct alignas(kPageSize) SessionControl {
  std::atomic<uint32_t> active;            // 0: the session is over; a futex
  std::atomic<uint32_t> when_full;         // WhenFull
  std::atomic<uint64_t> interval;          // sampling interval, bytes, >= 1
  std::atomic<uint64_t> block_timeout_us;  // 0: as long as the engine moves
  // Monotonic time, ns; changes at least every 500 ms while the engine is not stopped.
  std::atomic<uint64_t> heartbeat;
  std::atomic<uint32_t>
      known_stacks_epoch;  // a change makes the client send every stack's frames again
  std::atomic<uint32_t> rules_epoch;  // the modules_epoch that the rules are valid for
  std::atomic<uint32_t>
      check_period;  // every n-th sample of a thread carries a copy to compare
  std::atomic<uint32_t> max_stack_copy;  // bytes, at most kMaxStackCopy
  std::atomic<uint32_t>
      allocator_question;  // a new number: ask the allocator for its accounting
  std::atomic<uint32_t> look_at_exit;  // 1: a program that ends reports `exiting`
  // 1: every allocation of malloc's heap is sampled for as long as the session lasts, so
  // every free is reported. Never changes.
  std::atomic<uint32_t> reports_all_frees;
  // A robust mutex (pthread_mutex_t) that the engine holds as long as it lives. When it
  // is gone, however that came, the kernel sets kOwnerDied in the first word.
  alignas(64) std::atomic<uint32_t> engine_lock[16];
};

inline constexpr uint32_t kOwnerDied = 0x40000000;  // FUTEX_OWNER_DIED

// Readable memory that may hold stacks which are not a thread's own (sigaltstack,
// fibers), as the engine last saw it. Odd version: being changed.
struct alignas(kPageSize) StackRegions {
  std::atomic<uint32_t> version;
  std::atomic<uint32_t> count;

  struct Region {
    std::atomic<uint64_t> low;
    std::atomic<uint64_t> high;
  } regions[kMaxStackRegions];  // sorted by address
};

struct EngineBlock {
  SessionControl control;
  StackRegions stack_regions;
  RuleTable rules;
  alignas(kPageSize) HeapRules heap_rules;
};

// Sampling state and exact totals of one thread. Written by that thread alone; the engine
// reads. A slot belongs to a thread control block: when the next thread gets the same
// block, it inherits the slot, which is harmless since the countdown has no memory and
// the totals are sums.
struct alignas(64) ThreadSlot {
  uint64_t bytes_left;  // an allocation of at least this many bytes takes the slow path
  uint64_t calls;       // allocations, exact
  uint64_t granted;     // bytes allocated so far = granted - bytes_left
  uint64_t reserve;     // rest of the countdown behind bytes_left
  uint64_t interval;    // the countdown was drawn for this interval
  uint64_t random;      // generator state, never 0
  std::atomic<uint64_t> thread_pointer;  // owner; 0: free
  uint32_t thread_id;
  uint32_t samples;
};

static_assert(sizeof(ThreadSlot) == 64);

// Where a forked child counts until it has a session of its own: in the block of the
// ancestor that has one, so that its counts outlive it. slot.thread_pointer is its owner:
// kForkSlotOwned, with the owner's thread id in the lower half (0: unknown). Counts stay
// when the owner is gone; the next one counts on from there.
struct alignas(64) ForkSlot {
  ThreadSlot slot;
  uint64_t calls_before;  // by the owner's predecessors
  uint64_t bytes_before;
  // By the owner, up to the last sample that was due and could not be taken.
  uint64_t unsampled_calls;
  uint64_t unsampled_bytes;
};

static_assert(sizeof(ForkSlot) == 128);

inline constexpr uint64_t kForkSlotOwned = uint64_t{1} << 32;

enum class AllocatorKind : uint32_t { kUnknown = 0, kGlibc = 1, kJemalloc = 2 };

// Answers without having been asked, as the program ends.
inline constexpr uint32_t kQuestionAtExit = UINT32_MAX;

// Answer to SessionControl::allocator_question; sizes in bytes.
struct AllocatorReport {
  std::atomic<uint32_t> answered;  // the number of the question; written last
  std::atomic<uint32_t> taken;     // the number that a thread has set out to answer
  std::atomic<uint32_t> kind;      // AllocatorKind
  std::atomic<uint64_t> system;    // held from the system
  std::atomic<uint64_t> in_use;    // in blocks handed out
  std::atomic<uint64_t> free;      // held back
};

// Calls that open libraries whose allocations the client cannot see.
struct UnseenOpens {
  std::atomic<uint32_t> deepbind;    // dlopen() with RTLD_DEEPBIND
  std::atomic<uint32_t> namespaces;  // dlmopen() into another namespace
};

struct RingHeader {
  alignas(64) std::atomic<uint64_t> write_position;  // bytes ever reserved
  std::atomic<uint64_t> lost_records;
  std::atomic<uint64_t> lost_samples;
  alignas(64) std::atomic<uint64_t> read_position;  // space before it may be written
                                                    // again; by the engine
  std::atomic<uint64_t>
      consumed_position;             // bytes ever read, >= read_position; by the engine
  std::atomic<uint32_t> read_futex;  // changes with read_position, to wait on
  alignas(64) std::atomic<uint32_t> waiters;  // threads waiting for space
  std::atomic<uint32_t> modules_epoch;        // +1 at every dlclose
  std::atomic<uint32_t> slot_count;           // slots [0, slot_count) were ever used
  std::atomic<uint32_t> threads_without_slot;
  std::atomic<uint32_t> client_dormant;  // 1: the client gave up; client_error says why
  std::atomic<uint32_t> client_error;    // ClientError
  AllocatorReport allocator;
  std::atomic<uint32_t> exiting;    // 1: the program has ended and waits to be looked at
  std::atomic<uint32_t> exit_seen;  // 1: it was; by the engine
  std::atomic<uint32_t> reports_without_slot;  // allocations in heaps beside malloc's
  std::atomic<uint32_t> lacks_malloc;          // 1: it sees reported heaps only
  std::atomic<uint32_t> confined_children;     // that must not ask (client/confinement.h)
  std::atomic<uint32_t> forks;  // children of an attached process that have allocated
  std::atomic<uint32_t> fork_slot_count;   // slots [0, fork_slot_count) were ever used
  std::atomic<uint32_t> counted_children;  // that have counted in these slots and have
                                           // no session of their own
  std::atomic<uint32_t>
      children_without_slot;              // of these, those that have no slot either
  std::atomic<uint64_t> unsampled_calls;  // what a forked child has brought along in its
  std::atomic<uint64_t> unsampled_bytes;  // counts and could not sample
  // That could not ask: the engine's socket is not there for them, or they have no
  // descriptor left.
  std::atomic<uint32_t> unreached_children;
  std::atomic<uint32_t> children_without_descriptor;
  UnseenOpens unseen_opens;
};

enum class ClientError : uint32_t {
  kNone = 0,
  kEngineLost = 1,    // no heartbeat for long in an attached process
  kBlockTimeout = 2,  // a wait for space was in vain (client/engine_link/engine_wait.h):
                      // the record was dropped, the session goes on
};

struct alignas(kPageSize) ClientBlock {
  // First, because a forked child keeps them mapped when it leaves the rest behind.
  ForkSlot fork_slots[kMaxForkSlots];
  alignas(kPageSize) RingHeader ring;
  alignas(kPageSize) ThreadSlot slots[kMaxThreadSlots];
  // One per thread and heap beside malloc's, found by hash (HeapSlotKey in
  // thread_pointer).
  alignas(kPageSize) ThreadSlot heap_slots[kMaxHeapSlots];
  HeapEntry heaps[kMaxHeaps];
  alignas(kPageSize) LabelEntry labels[kMaxLabels];
};

// Owner of a heap slot; never 0.
inline uint64_t HeapSlotKey(uint64_t thread_pointer, uint8_t heap_id) {
  return thread_pointer << 8 | heap_id;
}

inline uint8_t HeapOfSlotKey(uint64_t key) {
  return static_cast<uint8_t>(key);
}

inline constexpr size_t kRingOffset = sizeof(ClientBlock);
static_assert(kRingOffset % kPageSize == 0);

inline constexpr uint64_t kMinRingSize = 2 * kPageSize;
inline constexpr uint64_t kMaxRingSize = uint64_t{500} * 1024 * 1024;

}  // namespace heapprofd
