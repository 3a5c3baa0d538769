#include "client/recorder.h"

#include <cstring>

#include "client/engine_link/space_wait.h"
#include "client/heap_filter.h"
#include "client/labels.h"
#include "client/probes.h"
#include "client/spare_memory.h"
#include "client/stack_evidence.h"
#include "rt/compiler.h"
#include "rt/syscall.h"

namespace heapprofd {
namespace {

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
        static_cast<unsigned>(&slot - g_session.client()->slots) % kMemos;
    const bool is_there = MemoOf(preferred) != nullptr;
    const uint64_t there = MemosThere();
    uint64_t used = g_wiped.memos_in_use.load(std::memory_order_relaxed);
    while ((~used & there) != 0) {
      const bool is_free = is_there && (used >> preferred & 1) == 0;
      const unsigned index =
          is_free ? preferred : static_cast<unsigned>(__builtin_ctzll(~used & there));
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
  StackMemo* memo() { return index_ < kMemos ? MemoOf(index_) : nullptr; }

 private:
  unsigned index_ = kMemos;
};

HPD_COLD void CountLost(RecordType type) {
  RingHeader& header = g_session.client()->ring;
  header.lost_records.fetch_add(1, std::memory_order_relaxed);
  if (type == RecordType::kSample)
    header.lost_samples.fetch_add(1, std::memory_order_relaxed);
}

HPD_COLD RingWriter::Reservation ReserveLater(RecordType type,
                                              size_t payload,
                                              Part part) {
  RingWriter::Reservation reservation;
  SpaceWait wait(part);
  while (reservation.payload == nullptr && wait.ForSpace(payload))
    reservation = g_session.ring().Reserve(type, payload);
  if (reservation.payload == nullptr)
    CountLost(type);
  return reservation;
}

RingWriter::Reservation Reserve(RecordType type, size_t payload, Part part) {
  const RingWriter::Reservation reservation = g_session.ring().Reserve(type, payload);
  return HPD_LIKELY(reservation.payload != nullptr) ? reservation
                                                    : ReserveLater(type, payload, part);
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
                               .anchor_bp = evidence.anchor.bp,
                               .link = LinkOf(evidence.copy_from)};
  to = Append(to, &header, sizeof(header));
  Append(to, reinterpret_cast<const void*>(header.sp & ~uint64_t{7}), header.size);
}

// A sampled allocation on its way into the ring.
struct Sample {
  ThreadSlot& slot;
  const Block& block;
  uint64_t size;
  uint64_t interval;
  const CallSite& site;
  bool is_check;
};

void FillRecord(std::byte* to, const Sample& sample, const StackEvidence& evidence) {
  const SampleRecord record{.address = sample.block.address,
                            .size = sample.size,
                            .tsc = rt::ReadTsc(),
                            .outer_hash = evidence.outer_hash,
                            .interval = sample.interval & kIntervalBits,
                            .function = static_cast<uint8_t>(sample.site.function),
                            .thread_id = sample.slot.thread_id,
                            .frame_count = evidence.key_count,
                            .heap_id = sample.block.heap_id,
                            .flags = evidence.flags};
  FillSample(to, record, evidence);
}

// Of this block's heap: then to keep its blocks in the filter would be in vain.
bool ReportsAllFrees(const Block& block) {
  return block.heap_id == kMallocHeapId &&
         g_session.engine()->control.reports_all_frees.load(std::memory_order_relaxed) !=
             0;
}

void InsertInto(SampledFilter& filter, uint64_t key) {
  if (HPD_UNLIKELY(!filter.Insert(key)))
    GiveMemory(filter);
}

// Sampling may have begun before the session's end and get here after it: then nobody
// else will close the filter.
void OpenFilter(SampledFilter& filter) {
  filter.Open();
  if (HPD_UNLIKELY(g_wiped.active.load() == 0))
    filter.Close();
}

// 0: it is in the ring; else the payload for which there was no space.
size_t TryToRecord(const Sample& sample) {
  const Block& block = sample.block;
  if (ReportsAllFrees(block))
    OpenFilter(FilterOf(block));
  else
    FilterOf(block).PrefetchForInsert(FilterKey(block));
  g_session.ring().PrefetchNext();
  MemoLease lease(sample.slot);
  StackEvidence evidence =
      TakeStack(sample.site.ToCursor(), sample.slot, lease.memo(), sample.is_check);
  PrefetchKnownStack(evidence);
  InsertInto(FilterOf(block), FilterKey(block));
  if (HPD_UNLIKELY(t_labels.ids != 0)) {
    evidence.labels = t_labels.ids;
    evidence.flags |= kSampleHasLabels;
#ifndef HPD_FLAT_CLIENT
    PublishLabels(evidence.labels);
#endif
  }
  if (evidence.hash != 0 && !sample.is_check)
    LeaveOutKnownFrames(evidence);
  const size_t payload = evidence.PayloadSize();
  const RingWriter::Reservation reservation =
      g_session.ring().Reserve(RecordType::kSample, payload);
  if (HPD_UNLIKELY(reservation.payload == nullptr)) {
    FilterOf(block).Remove(FilterKey(block));
    return payload;
  }
  FillRecord(reservation.payload, sample, evidence);
  g_session.ring().Commit(reservation);
  RememberSent(evidence, reservation.end);
  return 0;
}

// Waits without the memo, which others need meanwhile: without one they would have to
// send copies of their stacks, which fill the ring. And takes the stack anew, for which
// the engine may know the rules by now.
HPD_COLD bool RecordLater(const Sample& sample, size_t payload) {
  SpaceWait wait(Part::kLast);
  while (payload != 0 && wait.ForSpace(payload))
    payload = TryToRecord(sample);
  if (payload != 0)
    CountLost(RecordType::kSample);
  return payload == 0;
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
      g_session.engine()->control.check_period.load(std::memory_order_relaxed);
  const Sample sample{.slot = slot,
                      .block = block,
                      .size = size,
                      .interval = interval,
                      .site = site,
                      .is_check = period != 0 && slot.samples % period == 0};
  const size_t payload = TryToRecord(sample);
  if (HPD_UNLIKELY(payload != 0 && !RecordLater(sample, payload)))
    return;
  ProbeAllocation(block.address, size, interval);
}

namespace {

void RecordFreeAs(RecordType type, const Block& block, Part part) {
  if (g_session.state.load(std::memory_order_acquire) != SessionState::kActive)
    return;
  const RingWriter::Reservation reservation = Reserve(type, sizeof(FreeRecord), part);
  if (reservation.payload == nullptr)
    return;
  const FreeRecord record{
      .address = block.address,
      .tsc = rt::ReadTsc(),
      .thread_id = t_slot->thread_id,
      .heap_id = block.heap_id,
      .is_realloc = part == Part::kFirstOfTwo ? uint8_t{1} : uint8_t{0},
      .reserved = 0};
  memcpy(reservation.payload, &record, sizeof(record));
  g_session.ring().Commit(reservation);
}

}  // namespace

HPD_NOINLINE void RecordFree(const Block& block, bool is_realloc) {
  ProbeFree(block.address);
  RecordFreeAs(RecordType::kFree, block, is_realloc ? Part::kFirstOfTwo : Part::kOnly);
}

HPD_COLD void RecordReallocFailed(const Block& block) {
  InsertInto(FilterOf(block), FilterKey(block));
  RecordFreeAs(RecordType::kReallocFailed, block, Part::kLast);
}

HPD_COLD void RecordMark(RecordType type, const char* name) {
  if (g_session.state.load(std::memory_order_acquire) != SessionState::kActive)
    return;
  const RingWriter::Reservation reservation =
      Reserve(type, sizeof(MarkRecord), Part::kOnly);
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
  g_session.client()->ring.modules_epoch.fetch_add(1, std::memory_order_acq_rel);
  const RingWriter::Reservation reservation =
      Reserve(RecordType::kModulesChanged, 0, Part::kOnly);
  if (reservation.payload != nullptr)
    g_session.ring().Commit(reservation);
}

}  // namespace heapprofd
