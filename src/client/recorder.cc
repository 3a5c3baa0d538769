#include "client/recorder.h"

#include <linux/futex.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "client/heap_filter.h"
#include "client/labels.h"
#include "client/probes.h"
#include "rt/compiler.h"
#include "rt/syscall.h"

namespace heapprofd {
namespace {

// How long a writer waits for the heartbeat to change before it takes the engine for
// lost, in rounds of kWaitNanoseconds.
constexpr int kLostRounds = 3000;
constexpr long kWaitNanoseconds = 1'000'000;

// Stack pointer at which this thread entered the recorder, 0: it is not inside. A signal
// handler that interrupts the recorder passes through; one that left it by longjmp is
// recognised by a higher stack.
#ifdef HPD_FLAT_CLIENT
constexpr FlatThreadVariable<uint64_t, &FlatThread::entered_at> t_entered_at;
#else
__attribute__((tls_model("initial-exec"))) thread_local uint64_t t_entered_at;
#endif

class RecorderEntry {
 public:
  explicit RecorderEntry(uint64_t sp)
      : is_first_(t_entered_at == 0 || t_entered_at < sp) {
    if (is_first_)
      t_entered_at = sp;
  }

  RecorderEntry(const RecorderEntry&) = delete;
  RecorderEntry& operator=(const RecorderEntry&) = delete;

  ~RecorderEntry() {
    if (is_first_)
      t_entered_at = 0;
  }

  bool is_first() const { return is_first_; }

 private:
  const bool is_first_;
};

// A StackMemo for the time of one event, if possible the one that this thread used last.
// Off the stack, which may be as small as a signal stack.
class MemoLease {
 public:
  explicit MemoLease(const ThreadSlot& slot) {
    const auto preferred =
        static_cast<unsigned>(&slot - g_session.client->slots) % kMemos;
    uint64_t used = g_wiped.memos_in_use.load(std::memory_order_relaxed);
    while (~used != 0) {
      const bool is_free = (used >> preferred & 1) == 0;
      const unsigned index =
          is_free ? preferred : static_cast<unsigned>(__builtin_ctzll(~used));
      if (g_wiped.memos_in_use.compare_exchange_weak(used, used | uint64_t{1} << index,
                                                     std::memory_order_acquire)) {
        index_ = index;
        return;
      }
    }
  }

  MemoLease(const MemoLease&) = delete;
  MemoLease& operator=(const MemoLease&) = delete;

  ~MemoLease() {
    if (index_ < kMemos)
      g_wiped.memos_in_use.fetch_and(~(uint64_t{1} << index_), std::memory_order_release);
  }

  // nullptr when all are in use.
  StackMemo* memo() { return index_ < kMemos ? &g_session.memos[index_] : nullptr; }

 private:
  unsigned index_ = kMemos;
};

void WaitForReader(uint32_t seen) {
  RingHeader& header = g_session.client->ring;
  const timespec pause{.tv_sec = 0, .tv_nsec = kWaitNanoseconds};
  header.waiters.fetch_add(1, std::memory_order_relaxed);
  rt::Syscall(SYS_futex, rt::ToArg(&header.read_futex), FUTEX_WAIT,
              static_cast<long>(seen), rt::ToArg(&pause));
  header.waiters.fetch_sub(1, std::memory_order_relaxed);
}

// The ring is full and the session blocks: waits for space, bounded by the timeout and
// the engine's life.
HPD_COLD RingWriter::Reservation ReserveBlocking(RecordType type, size_t payload) {
  const SessionControl& control = g_session.engine->control;
  const uint64_t timeout_us = control.block_timeout_us.load(std::memory_order_relaxed);
  uint64_t heartbeat = control.heartbeat.load(std::memory_order_relaxed);
  int silent_rounds = 0;
  for (uint64_t waited_us = 0; timeout_us == 0 || waited_us < timeout_us;
       waited_us += 1000) {
    const uint32_t seen =
        g_session.client->ring.read_futex.load(std::memory_order_acquire);
    RingWriter::Reservation reservation = g_session.ring().Reserve(type, payload);
    if (reservation.payload != nullptr || IsSessionOver(control))
      return reservation;
    WaitForReader(seen);
    const uint64_t now = control.heartbeat.load(std::memory_order_relaxed);
    silent_rounds = now == heartbeat ? silent_rounds + 1 : 0;
    heartbeat = now;
    if (silent_rounds > kLostRounds) {
      GoDormant(ClientError::kEngineLost);
      return {};
    }
  }
  g_session.client->ring.client_error.store(
      static_cast<uint32_t>(ClientError::kBlockTimeout), std::memory_order_relaxed);
  return {};
}

RingWriter::Reservation Reserve(RecordType type, size_t payload) {
  RingWriter::Reservation reservation = g_session.ring().Reserve(type, payload);
  if (HPD_LIKELY(reservation.payload != nullptr))
    return reservation;
  const auto when_full =
      g_session.engine->control.when_full.load(std::memory_order_relaxed);
  const bool can_ever_fit = sizeof(RecordHeader) + payload <= g_session.ring().size() / 2;
  if (when_full == static_cast<uint32_t>(WhenFull::kBlock) && can_ever_fit)
    reservation = ReserveBlocking(type, payload);
  if (reservation.payload == nullptr) {
    RingHeader& header = g_session.client->ring;
    header.lost_records.fetch_add(1, std::memory_order_relaxed);
    if (type == RecordType::kSample)
      header.lost_samples.fetch_add(1, std::memory_order_relaxed);
  }
  return reservation;
}

// What of a stack goes into the record.
struct StackEvidence {
  StackMemo* memo = nullptr;  // holds the keys
  uint16_t key_count = 0;
  uint64_t hash = 0;        // of a complete walk, else 0
  uint64_t outer_hash = 0;  // of its frames outside of the keys
  Cursor copy_from;
  uint64_t copy_size = 0;
  Cursor anchor;
  uint8_t flags = 0;
  uint64_t labels = 0;

  size_t PayloadSize() const {
    return sizeof(SampleRecord) + (labels != 0 ? sizeof(labels) : 0) +
           size_t{key_count} * 8 +
           ((flags & kSampleHasStackCopy) != 0 ? sizeof(StackCopyHeader) + copy_size : 0);
  }
};

void AddCopy(StackEvidence& evidence, const Cursor& from, const LiveStack& stack) {
  const uint64_t limit = std::min<uint64_t>(
      {g_session.engine->control.max_stack_copy.load(std::memory_order_relaxed),
       kMaxStackCopy, g_session.ring().size() / 4});
  const uint64_t start = from.sp & ~uint64_t{7};
  const uint64_t end = stack.CopyEnd(start);
  evidence.copy_from = from;
  evidence.copy_size = std::min(end - start, limit & ~uint64_t{7});
  evidence.flags |= kSampleHasStackCopy;
}

// The copy need not go further out than to frames that the engine knows.
void ShortenCopy(StackEvidence& evidence,
                 const WalkResult& walk,
                 const LiveStack& stack) {
  const uint64_t hash = evidence.memo->FindAnchor(walk, stack, &evidence.anchor);
  const uint64_t size = evidence.anchor.sp - (walk.stopped.sp & ~uint64_t{7});
  if (hash == 0 || size > evidence.copy_size)
    return;
  evidence.outer_hash = hash;
  evidence.copy_size = size & ~uint64_t{7};
}

std::atomic<uint64_t>& KnownStack(uint64_t hash) {
  return g_session.known_stacks[hash % kKnownStacks];
}

// The engine can ask for all frames again by a new epoch.
uint64_t KnownMark(uint64_t hash) {
  const uint64_t epoch =
      g_session.engine->control.known_stacks_epoch.load(std::memory_order_relaxed);
  return hash ^ epoch << 32;
}

// Leaves only those keys in the record that the engine does not have yet.
void LeaveOutKnownFrames(StackEvidence& evidence) {
  const bool is_known = evidence.memo->unsent_count() == 0 ||
                        KnownStack(evidence.hash).load(std::memory_order_relaxed) ==
                            KnownMark(evidence.hash);
  evidence.key_count =
      is_known ? uint16_t{0} : static_cast<uint16_t>(evidence.memo->unsent_count());
  evidence.outer_hash = is_known ? evidence.hash : evidence.memo->sent_hash();
}

// The record is in the ring, so that later ones can refer to its frames.
void RememberSent(const StackEvidence& evidence, uint64_t record_end) {
  if (evidence.key_count > 0 || evidence.copy_size > 0) {
    uint64_t end = g_session.frames_end.load(std::memory_order_relaxed);
    while (end < record_end &&
           !g_session.frames_end.compare_exchange_weak(end, record_end)) {
    }
  }
  if (evidence.hash == 0)
    return;
  evidence.memo->MarkSent();
  if (evidence.key_count > 0)
    KnownStack(evidence.hash).store(KnownMark(evidence.hash), std::memory_order_relaxed);
}

void AddWalk(StackEvidence& evidence,
             const WalkResult& walk,
             const Cursor& caller,
             const LiveStack& stack,
             bool is_check) {
  switch (walk.end) {
    case WalkEnd::kCut:
    case WalkEnd::kTooDeep:
      evidence.flags |= walk.end == WalkEnd::kCut ? kSampleCut : kSampleTooDeep;
      [[fallthrough]];
    case WalkEnd::kComplete:
      evidence.hash = walk.hash;
      evidence.outer_hash = kEmptyStackHash;
      if (is_check) {
        evidence.flags |= kSampleIsCheck;
        AddCopy(evidence, caller, stack);
      }
      break;
    case WalkEnd::kNoRule:
      evidence.key_count = walk.new_count - 1;  // the last one begins the copy
      AddCopy(evidence, walk.stopped, stack);
      ShortenCopy(evidence, walk, stack);
      break;
    case WalkEnd::kBadMemory:
      evidence.flags |= kSampleBadMemory;
      if ((evidence.flags & kSampleForeignStack) == 0) {
        evidence.key_count = 0;  // a rule is wrong: let the engine unwind all of it
        AddCopy(evidence, caller, stack);
      }
      break;
  }
}

StackEvidence TakeStack(const Cursor& caller,
                        const ThreadSlot& slot,
                        StackMemo* memo,
                        bool is_check) {
  const SessionControl& control = g_session.engine->control;
  const uint64_t thread_pointer = rt::ThreadPointer();
  const StackBounds own = g_session.layout.OwnStack(thread_pointer, caller.sp);
  const StackBounds bounds =
      own.is_known ? own : ForeignStack(g_session.engine->stack_regions, caller.sp);
  const LiveStack stack(
      bounds, own.is_known ? own : g_session.layout.ReadableStack(thread_pointer));
  StackEvidence evidence;
  if (!bounds.is_known) {
    evidence.flags |= kSampleForeignStack;
    g_session.client->ring.foreign_stacks.fetch_add(1, std::memory_order_relaxed);
  }
  const uint32_t modules =
      g_session.client->ring.modules_epoch.load(std::memory_order_relaxed);
  if (memo == nullptr || control.rules_epoch.load(std::memory_order_acquire) != modules) {
    AddCopy(evidence, caller, stack);
    return evidence;
  }
  memo->PrepareFor(&slot, control.known_stacks_epoch.load(std::memory_order_relaxed));
  const WalkResult walk = WalkStack(g_session.engine->rules, caller, stack, *memo);
  evidence.memo = memo;
  evidence.key_count = static_cast<uint16_t>(memo->frame_count());
  AddWalk(evidence, walk, caller, stack, is_check);
  return evidence;
}

std::byte* Append(std::byte* to, const void* from, size_t size) {
  memcpy(to, from, size);
  return to + size;
}

void FillSample(std::byte* to,
                const SampleRecord& record,
                const StackEvidence& evidence) {
  to = Append(to, &record, sizeof(record));
  if (evidence.labels != 0)
    to = Append(to, &evidence.labels, sizeof(evidence.labels));
  for (size_t i = 0; i < evidence.key_count; ++i) {
    const uint64_t key = evidence.memo->key(i);
    to = Append(to, &key, sizeof(key));
  }
  if ((evidence.flags & kSampleHasStackCopy) == 0)
    return;
  const StackCopyHeader header{.key = evidence.copy_from.key,
                               .sp = evidence.copy_from.sp,
                               .bp = evidence.copy_from.bp,
                               .size = evidence.copy_size,
                               .anchor_key = evidence.anchor.key,
                               .anchor_sp = evidence.anchor.sp,
                               .anchor_bp = evidence.anchor.bp};
  to = Append(to, &header, sizeof(header));
  Append(to, reinterpret_cast<const void*>(header.sp & ~uint64_t{7}), header.size);
}

}  // namespace

HPD_NOINLINE void RecordSample(ThreadSlot& slot,
                               const Block& block,
                               uint64_t size,
                               uint64_t interval,
                               const CallSite& site) {
  const RecorderEntry entry(site.stack);
  if (!entry.is_first())
    return;
  ++slot.samples;
  const uint32_t period =
      g_session.engine->control.check_period.load(std::memory_order_relaxed);
  const bool is_check = period != 0 && slot.samples % period == 0;
  MemoLease lease(slot);
  StackEvidence evidence = TakeStack(site.ToCursor(), slot, lease.memo(), is_check);
  if (HPD_UNLIKELY(t_labels.ids != 0)) {
    evidence.labels = t_labels.ids;
    evidence.flags |= kSampleHasLabels;
#ifndef HPD_FLAT_CLIENT
    PublishLabels(evidence.labels);
#endif
  }
  if (evidence.hash != 0 && !is_check)
    LeaveOutKnownFrames(evidence);
  FilterOf(block).Insert(FilterKey(block));
  const RingWriter::Reservation reservation =
      Reserve(RecordType::kSample, evidence.PayloadSize());
  if (reservation.payload == nullptr) {
    FilterOf(block).Remove(FilterKey(block));
    return;
  }
  const SampleRecord record{.address = block.address,
                            .size = size,
                            .tsc = rt::ReadTsc(),
                            .outer_hash = evidence.outer_hash,
                            .interval = interval,
                            .thread_id = slot.thread_id,
                            .frame_count = evidence.key_count,
                            .heap_id = block.heap_id,
                            .flags = evidence.flags};
  FillSample(reservation.payload, record, evidence);
  g_session.ring().Commit(reservation);
  RememberSent(evidence, reservation.end);
  ProbeAllocation(block.address, size, interval);
}

namespace {

void RecordFreeAs(RecordType type, const Block& block, bool is_realloc) {
  if (g_session.state.load(std::memory_order_acquire) != SessionState::kActive)
    return;
  const RingWriter::Reservation reservation = Reserve(type, sizeof(FreeRecord));
  if (reservation.payload == nullptr)
    return;
  const FreeRecord record{.address = block.address,
                          .tsc = rt::ReadTsc(),
                          .thread_id = t_slot->thread_id,
                          .heap_id = block.heap_id,
                          .is_realloc = is_realloc ? uint8_t{1} : uint8_t{0},
                          .reserved = 0};
  memcpy(reservation.payload, &record, sizeof(record));
  g_session.ring().Commit(reservation);
}

}  // namespace

HPD_NOINLINE void RecordFree(const Block& block, bool is_realloc) {
  ProbeFree(block.address);
  RecordFreeAs(RecordType::kFree, block, is_realloc);
}

HPD_COLD void RecordReallocFailed(const Block& block) {
  FilterOf(block).Insert(FilterKey(block));
  RecordFreeAs(RecordType::kReallocFailed, block, false);
}

HPD_COLD void RecordMark(RecordType type, const char* name) {
  if (g_session.state.load(std::memory_order_acquire) != SessionState::kActive)
    return;
  const RingWriter::Reservation reservation = Reserve(type, sizeof(MarkRecord));
  if (reservation.payload == nullptr)
    return;
  MarkRecord record{.tsc = rt::ReadTsc(), .name = {}};
  for (size_t i = 0; i + 1 < sizeof(record.name) && name[i] != 0; ++i)
    record.name[i] = name[i];
  memcpy(reservation.payload, &record, sizeof(record));
  g_session.ring().Commit(reservation);
}

HPD_COLD void RecordModulesChanged() {
  if (g_wiped.active.load(std::memory_order_acquire) == 0 ||
      g_session.state.load(std::memory_order_acquire) != SessionState::kActive)
    return;
  g_session.client->ring.modules_epoch.fetch_add(1, std::memory_order_acq_rel);
  const RingWriter::Reservation reservation = Reserve(RecordType::kModulesChanged, 0);
  if (reservation.payload != nullptr)
    g_session.ring().Commit(reservation);
}

}  // namespace heapprofd
