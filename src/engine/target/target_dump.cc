// What a target's profile says at a moment: heaps, exact totals, quality; the moments
// that the program itself names.
#include <algorithm>
#include <span>

#include "engine/target/exact_totals.h"
#include "engine/target/forked_children.h"
#include "engine/target/sample_parts.h"
#include "engine/target/target.h"
#include "engine/target/target_text.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxMarks = 10'000;
constexpr size_t kMaxRequestedDumps = 1000;
// What they cost the trace, the spool and the finisher, counted in call sites.
constexpr uint64_t kMaxRequestedCost = 2'000'000;
constexpr uint64_t kCostOfHeap = 16;  // also of an empty one

}  // namespace

void Target::HandleMark(std::span<const std::byte> payload, bool is_dump) {
  const std::optional<MarkRecord> record = ParseMark(payload);
  if (!record) {
    ++bad_records_;
    return;
  }
  last_event_ns_ = std::max(last_event_ns_, clock_->ToNs(record->tsc));
  if (!is_dump)
    return KeepMark(
        {.time_ns = last_event_ns_, .name = TextFromTarget(record->name, kMarkNameSize)});
  if (!MayRequestDump()) {
    ++profile_.quality.refused_dumps;
    return;
  }
  ++dear_records_;
  UpdateDump();
  ++requested_dumps_;
  for (HeapDump& dump : profile_.heaps) {
    dump.end_ns = last_event_ns_;
    requested_cost_ += kCostOfHeap + dump.callsites.size() + dump.threads.size();
  }
  ChargeRequests();
  previous_dump_ns_ = last_event_ns_;
  profile_.requested_dumps.push_back(profile_.heaps);
  // In a trace each heap's dump has a nanosecond of its own; what comes next, which may
  // have been read off the clock at the same time, comes after all of them.
  last_event_ns_ += profile_.heaps.size();
}

void Target::KeepMark(Mark mark) {
  if (profile_.marks.size() >= kMaxMarks ||
      (dump_account_ && !dump_account_->HasRoom())) {
    ++profile_.quality.refused_marks;
    return;
  }
  profile_.marks.push_back(std::move(mark));
  ChargeRequests();
}

// A mark is as much as a call site.
void Target::ChargeRequests() {
  if (dump_account_)
    dump_account_->Set(requested_cost_ + profile_.marks.size());
}

bool Target::MayRequestDump() const {
  return requested_dumps_ < kMaxRequestedDumps && requested_cost_ < kMaxRequestedCost &&
         (!dump_account_ || dump_account_->HasRoom());
}

HeapDump Target::CountedMalloc() const {
  HeapDump dump;
  const ClientBlock& client = memory_->client();
  const uint32_t slots = std::min<uint32_t>(
      client.ring.slot_count.load(std::memory_order_acquire), kMaxThreadSlots);
  for (uint32_t i = 0; i < slots; ++i)
    AddExactTotals(client.slots[i], &dump);
  return dump;
}

HeapDump Target::DumpOfMalloc() const {
  HeapDump dump = CountedMalloc();
  dump.heap_name = kMallocHeapName;
  dump.original_sampling_interval = malloc_interval_;
  dump.sampling_interval = memory_->engine().control.interval.load();
  heap_->Snapshot(&dump);
  return dump;
}

double Target::LiveBytes() const {
  return heap_->LiveBytes(CountedMalloc()) + custom_heaps_.LiveBytes();
}

void Target::FinishDump() {
  if (memory_ == nullptr)
    return;  // released: the last dump stands
  UpdateDump();
  const uint64_t now = std::max(previous_dump_ns_, last_event_ns_);
  std::span<HeapDump> dumps(profile_.heaps);
  uint64_t& left_out = profile_.quality.unshaped_blocks;
  if (!dumps.empty() && dumps[0].heap_name == kMallocHeapName) {
    left_out = heap_->SnapshotShapes(now, dumps.data());
    dumps = dumps.subspan(1);
  }
  left_out += custom_heaps_.SnapshotShapes(now, dumps);
}

void Target::UpdateDump() {
  if (memory_ == nullptr)
    return;
  profile_.unrecorded_heaps =
      custom_heaps_.FindPublished(memory_->client(), memory_->engine().heap_rules);
  std::vector<HeapDump> dumps = custom_heaps_.Snapshot(memory_->client());
  // A program can have heaps of its own and no hooks of malloc; that malloc's heap is
  // empty is worth saying only when there is nothing else.
  HeapDump malloc_dump = DumpOfMalloc();
  profile_.hooks_malloc =
      memory_->client().ring.lacks_malloc.load(std::memory_order_relaxed) == 0;
  if (malloc_interval_ != 0 && (malloc_dump.exact_alloc_calls > 0 || dumps.empty()))
    dumps.insert(dumps.begin(), std::move(malloc_dump));
  const uint64_t now = MonotonicNs();
  for (HeapDump& dump : dumps) {
    dump.start_ns = previous_dump_ns_;
    dump.end_ns = now;
  }
  previous_dump_ns_ = now;
  profile_.heaps = std::move(dumps);
  CountChildren(memory_->client());
  UpdateQuality();
}

void Target::UpdateQuality() {
  const RingHeader& header = memory_->client().ring;
  Quality& quality = profile_.quality;
  quality.postponed_frames = address_space_->postponed();
  profile_.late_files = address_space_->late_files();
  quality.late_files = profile_.late_files.size();
  quality.map_reparses = address_space_->refreshes();
  // A thread that ends with its process leaves the one record that it was writing.
  quality.cut_records = std::min<uint64_t>(
      skipped_at_end_, std::min<uint64_t>(header.slot_count.load(), kMaxThreadSlots));
  quality.corrupt_records =
      bad_records_ + reader_->corrupt_records() - quality.cut_records;
  quality.lost_records =
      unread_records_ +
      BoundedCounter(header.lost_records.load(std::memory_order_relaxed));
  quality.lost_samples =
      BoundedCounter(header.lost_samples.load(std::memory_order_relaxed));
  quality.threads_without_slot =
      header.threads_without_slot.load(std::memory_order_relaxed);
  quality.reports_without_slot =
      header.reports_without_slot.load(std::memory_order_relaxed);
  if (header.client_error.load(std::memory_order_relaxed) ==
      static_cast<uint32_t>(ClientError::kBlockTimeout))
    profile_.client_fault = ClientFault::kHitTimeout;
}

void Target::CountChildren(const ClientBlock& client) {
  if (follows_children_)
    profile_.forked = CountForkedChildren(client);
}

// Only when they become scarce: it takes a look at all processes of the machine, in turns
// of a few milliseconds, and ten times as long until the next one.
void Target::FreeForkSlots(uint64_t end_ns) {
  constexpr uint64_t kTurnNs = 2'000'000;
  constexpr uint64_t kPauseNs = 500'000'000;
  ClientBlock& client = memory_->client();
  if (!follows_children_ ||
      client.ring.fork_slot_count.load(std::memory_order_relaxed) < kMaxForkSlots / 2)
    return;
  const uint64_t now = MonotonicNs();
  if (now < fork_slots_next_ns_ || now >= end_ns)
    return;
  if (ended_owners_ == nullptr)
    ended_owners_ = std::make_unique<EndedOwners>(client);
  const bool is_done = ended_owners_->LookUntil(std::min(now + kTurnNs, end_ns));
  fork_slots_next_ns_ = MonotonicNs() + (is_done ? kPauseNs : 10 * kTurnNs);
  if (!is_done)
    return;
  ended_owners_->Free(client);
  ended_owners_.reset();
}

// Children of the process that go on are still to be counted when it has ended.
void Target::KeepForChildren() {
  ended_owners_.reset();
  if (!follows_children_ || memory_ == nullptr)
    return;
  CountChildren(memory_->client());
  if (CountOwnedForkSlots(memory_->client()) == 0)
    return;
  left_memory_ =
      std::make_unique<LeftMemory>(SharedMemory::TakeClientFile(std::move(memory_)));
}

void Target::LookAfterChildren() {
  if (!left_memory_->IsInUse())
    LeaveChildren();
}

void Target::LeaveChildren() {
  if (left_memory_->client() != nullptr)
    CountChildren(*left_memory_->client());
  left_memory_.reset();
}

}  // namespace heapprofd
