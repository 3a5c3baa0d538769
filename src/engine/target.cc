#include "engine/target.h"

#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "engine/process_info.h"
#include "engine/sample_parts.h"
#include "engine/target_text.h"
#include "profile/estimate.h"
#include "walk/stack_hash.h"

namespace heapprofd {
namespace {

constexpr uint64_t kResidentRing = uint64_t{1}
                                   << 20;       // bytes of the ring that stay resident
constexpr uint64_t kSettledNs = 1'000'000'000;  // most code has been seen after this
constexpr uint64_t kStuckNs = 2'000'000'000;
constexpr uint64_t kRegionsNs = 50'000'000;
constexpr uint64_t kAdaptNs = 100'000'000;
// Counters that the target writes are cut here: still exact in a double, and so many
// targets' sums fit 64 bits.
constexpr uint64_t kMaxCounter = uint64_t{1} << 53;
constexpr size_t kMaxCallsites = 8'000'000;
constexpr uint64_t kNeverInterval = uint64_t{1} << 60;  // no allocation is ever sampled
constexpr size_t kMaxMarks = 10'000;
constexpr size_t kMaxRequestedDumps = 100;
constexpr size_t kMaxRequestedCallsites = 2'000'000;  // of all of these dumps
constexpr size_t kMaxStacks = 4'000'000;
constexpr size_t kMaxFrameCache = 1'000'000;

StackCopy CopyOf(const SampleParts& parts) {
  const StackCopyHeader& header = parts.copy;
  StackCopy copy{.cursor = {.key = header.key, .sp = header.sp, .bp = header.bp},
                 .bytes = parts.copy_bytes,
                 .anchor = {}};
  if (parts.record.outer_hash != 0 && (parts.record.flags & kSampleIsCheck) == 0)
    copy.anchor =
        Cursor{.key = header.anchor_key, .sp = header.anchor_sp, .bp = header.anchor_bp};
  return copy;
}

uint64_t Bounded(uint64_t counter) {
  return std::min(counter, kMaxCounter);
}

}  // namespace

Target::Target(pid_t pid, const SessionConfig& config, const TscClock* clock)
    : config_(config), clock_(clock), root_(OpenRoot(pid)), own_pid_(InnermostPid(pid)) {
  profile_.process = DescribeProcess(pid);
  profile_.process.start_ns = MonotonicNs();
  previous_dump_ns_ = profile_.process.start_ns;
  interner_ = std::make_unique<CallsiteInterner>(&profile_);
  heap_ = std::make_unique<LiveHeap>();
  labels_ = std::make_unique<LabelledCallsites>(&profile_, interner_.get());
}

Result<std::unique_ptr<Target>> Target::Create(pid_t pid,
                                               const SessionConfig& config,
                                               ModuleCache* modules,
                                               const TscClock* clock) {
  HPD_TRY_ASSIGN(std::unique_ptr<SharedMemory> memory,
                 SharedMemory::Create(config.ring_size_bytes));
  return CreateWith(std::move(memory), pid, config, modules, clock);
}

Result<std::unique_ptr<Target>> Target::CreateWith(std::unique_ptr<SharedMemory> memory,
                                                   pid_t pid,
                                                   const SessionConfig& config,
                                                   ModuleCache* modules,
                                                   const TscClock* clock) {
  std::unique_ptr<Target> target(new Target(pid, config, clock));
  target->memory_ = std::move(memory);
  target->reader_ =
      std::make_unique<RingReader>(&target->memory_->client().ring,
                                   target->memory_->ring(), target->memory_->ring_size());
  target->address_space_ =
      std::make_unique<AddressSpace>(pid, modules, &target->profile_.mappings);
  HPD_TRY_ASSIGN([[maybe_unused]] const RefreshOutcome outcome,
                 target->address_space_->Refresh());
  target->unwinder_ = std::make_unique<StackUnwinder>(target->address_space_.get());
  target->PublishConfig();
  return target;
}

void Target::PublishConfig() {
  SessionControl& control = memory_->engine().control;
  PublishHeapRules();
  control.interval.store(malloc_interval_ != 0 ? malloc_interval_ : kNeverInterval);
  control.when_full.store(static_cast<uint32_t>(config_.when_full));
  control.block_timeout_us.store(config_.block_timeout_us);
  control.check_period.store(config_.check_period);
  control.max_stack_copy.store(kDefaultStackCopy);
  control.look_at_exit.store(config_.ask_allocator ? 1 : 0);
  control.active.store(1, std::memory_order_release);
  PublishStackRegions();
}

void Target::PublishHeapRules() {
  HeapRules& rules = memory_->engine().heap_rules;
  FillHeapRules(config_.heaps, config_.interval_bytes, &rules);
  malloc_interval_ = HeapIntervalByName(rules, kMallocHeapName);
}

size_t Target::Drain(size_t max_records, bool writers_gone) {
  size_t count = 0;
  for (; count < max_records; ++count) {
    RingReader::Record record;
    const RingReader::Outcome outcome = reader_->Read(&record, writers_gone || IsStuck());
    if (outcome == RingReader::Outcome::kEmpty)
      break;
    if (outcome == RingReader::Outcome::kRecord)
      HandleRecord(record);
    ReleaseSpace();
  }
  reader_->PublishConsumed();
  if (count > 0)
    reader_->Rewind(kResidentRing);
  return count;
}

void Target::DrainRest(bool writers_gone) {
  constexpr size_t kBatch = 10'000;
  const uint64_t limit = reader_->position() + memory_->ring_size();
  while (reader_->position() < limit && Drain(kBatch, writers_gone) > 0) {
  }
}

// In steps: every release writes a cache line that the writers read.
void Target::ReleaseSpace() {
  if (reader_->position() - reader_->released() < memory_->ring_size() / 16)
    return;
  // What a burst has used beyond the usual goes back to the system, before its writers
  // can use it again.
  if (reader_->position() % memory_->ring_size() > 2 * kResidentRing)
    memory_->DiscardConsumed(reader_->released(), reader_->position());
  reader_->ReleaseSpace();
  RingHeader& header = memory_->client().ring;
  if (header.waiters.load(std::memory_order_relaxed) != 0)
    syscall(SYS_futex, &header.read_futex, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// A record that stays reserved although time passes: its writer left the hook by longjmp,
// or is stopped.
bool Target::IsStuck() {
  const uint64_t now = clock_->last_ns();
  if (reader_->position() != stuck_position_ || reader_->pending_bytes() == 0) {
    stuck_position_ = reader_->position();
    stuck_since_ns_ = now;
    return false;
  }
  return now - stuck_since_ns_ > kStuckNs;
}

void Target::Tick() {
  memory_->engine().control.heartbeat.fetch_add(1, std::memory_order_relaxed);
  if (config_.ask_allocator)
    LookAtExit();
  if (config_.when_full == WhenFull::kDrop || config_.adaptive_threshold_bytes != 0)
    AdaptInterval();
}

void Target::AdaptInterval() {
  const uint64_t lost =
      memory_->client().ring.lost_records.load(std::memory_order_relaxed);
  const uint64_t free_bytes =
      memory_->ring_size() - std::min(memory_->ring_size(), reader_->pending_bytes());
  const bool is_dropping =
      config_.when_full == WhenFull::kDrop && (lost != lost_seen_ || ring_fill() > 0.75);
  const bool is_pressed = is_dropping || free_bytes < config_.adaptive_threshold_bytes;
  lost_seen_ = lost;
  const uint64_t now = clock_->last_ns();
  if (!is_pressed || now - interval_changed_ns_ < kAdaptNs)
    return;
  std::atomic<uint64_t>& interval = memory_->engine().control.interval;
  const uint64_t limit = config_.adaptive_max_interval_bytes != 0
                             ? config_.adaptive_max_interval_bytes
                             : kMaxInterval;
  if (interval.load() < std::min(limit, kMaxInterval))
    interval.store(interval.load() * 2);
  std::atomic<uint32_t>& shift = memory_->engine().heap_rules.interval_shift;
  if (shift.load() < 40)
    shift.fetch_add(1);
  interval_changed_ns_ = now;
}

double Target::ring_fill() const {
  return static_cast<double>(reader_->pending_bytes()) /
         static_cast<double>(memory_->ring_size());
}

uint64_t Target::lost_records() const {
  return memory_ != nullptr ? Bounded(memory_->client().ring.lost_records.load(
                                  std::memory_order_relaxed))
                            : profile_.quality.lost_records;
}

void Target::HandleRecord(const RingReader::Record& record) {
  switch (record.type) {
    case RecordType::kSample:
      HandleSample(record.payload);
      return;
    case RecordType::kFree:
      HandleFree(record.payload, /*is_undo=*/false);
      return;
    case RecordType::kReallocFailed:
      HandleFree(record.payload, /*is_undo=*/true);
      return;
    case RecordType::kModulesChanged:
      HandleModulesChanged();
      return;
    case RecordType::kMark:
      HandleMark(record.payload, /*is_dump=*/false);
      return;
    case RecordType::kDumpNow:
      HandleMark(record.payload, /*is_dump=*/true);
      return;
  }
  ++bad_records_;
}

void Target::HandleSample(std::span<const std::byte> payload) {
  const std::optional<SampleParts> parts = ParseSample(payload);
  if (!parts) {
    ++bad_records_;
    return;
  }
  last_event_ns_ = std::max(last_event_ns_, clock_->ToNs(parts->record.tsc));
  ++profile_.quality.samples;
  if (IsSettled())
    ++profile_.quality.settled_samples;
  if (events_ != nullptr && parts->record.heap_id == kMallocHeapId)
    ReportAllocation(parts->record);
  CallsiteId callsite = CallsiteOfSample(*parts);
  if (parts->labels != 0 && profile_.callsites.size() <= kMaxCallsites)
    callsite = labels_->Intern(callsite, parts->labels, memory_->client());
  if (parts->record.heap_id != kMallocHeapId)
    return AllocateIn(parts->record.heap_id, parts->record, callsite);
  heap_->Allocate(parts->record.address, parts->record.size, parts->record.interval,
                  callsite, last_event_ns_);
}

void Target::ReportAllocation(const SampleRecord& record) {
  const Estimate estimate = EstimateOfSample(record.size, record.interval);
  events_->OnAllocation(pid(), {.address = record.address,
                                .size = record.size,
                                .sample_size = static_cast<uint64_t>(estimate.bytes),
                                .time_ns = last_event_ns_});
}

void Target::AllocateIn(uint8_t heap_id,
                        const SampleRecord& record,
                        CallsiteId callsite) {
  CustomHeap& heap =
      custom_heaps_.Get(heap_id, memory_->client(), memory_->engine().heap_rules);
  if (!custom_heaps_.MayAdd(heap, callsite))
    callsite = NamedStack("[too many stacks]");
  heap.Allocate(record.address, record.size, record.interval, callsite, last_event_ns_);
}

void Target::HandleMark(std::span<const std::byte> payload, bool is_dump) {
  const std::optional<MarkRecord> record = ParseMark(payload);
  if (!record) {
    ++bad_records_;
    return;
  }
  last_event_ns_ = std::max(last_event_ns_, clock_->ToNs(record->tsc));
  if (!is_dump) {
    if (profile_.marks.size() < kMaxMarks)
      profile_.marks.push_back({.time_ns = last_event_ns_,
                                .name = TextFromTarget(record->name, kMarkNameSize)});
    return;
  }
  size_t callsites = 0;
  for (const auto& dumps : profile_.requested_dumps) {
    for (const HeapDump& dump : dumps)
      callsites += dump.callsites.size();
  }
  if (profile_.requested_dumps.size() >= kMaxRequestedDumps ||
      callsites >= kMaxRequestedCallsites)
    return;
  UpdateDump();
  for (HeapDump& dump : profile_.heaps)
    dump.end_ns = last_event_ns_;
  previous_dump_ns_ = last_event_ns_;
  profile_.requested_dumps.push_back(profile_.heaps);
}

void Target::HandleFree(std::span<const std::byte> payload, bool is_undo) {
  const std::optional<FreeRecord> record = ParseFree(payload);
  if (!record) {
    ++bad_records_;
    return;
  }
  last_event_ns_ = std::max(last_event_ns_, clock_->ToNs(record->tsc));
  if (events_ != nullptr && !is_undo && record->heap_id == kMallocHeapId)
    events_->OnFree(pid(), record->address);
  if (record->heap_id != kMallocHeapId) {
    if (CustomHeap* heap = custom_heaps_.Find(record->heap_id))
      heap->Free(record->address);
  } else if (is_undo)
    heap_->UndoRealloc(record->address, record->thread_id, last_event_ns_);
  else if (record->is_realloc != 0)
    heap_->FreeForRealloc(record->address, record->thread_id);
  else
    heap_->Free(record->address);
}

CallsiteId Target::CallsiteOfSample(const SampleParts& parts) {
  Quality& quality = profile_.quality;
  const uint8_t flags = parts.record.flags;
  if (profile_.callsites.size() > kMaxCallsites)
    return NamedStack("[too many stacks]");
  if ((flags & kSampleForeignStack) != 0)
    PublishStackRegions();
  if ((flags & kSampleHasStackCopy) != 0 && (flags & kSampleIsCheck) == 0)
    return UnwindCopy(parts);
  if (parts.record.outer_hash == 0) {
    ++quality.truncated_stacks;
    return InternStack(parts.keys);
  }
  ++quality.walked_samples;
  if ((flags & kSampleTooDeep) != 0)
    ++quality.truncated_stacks;
  if ((flags & kSampleCut) != 0)
    ++quality.unwind_errors;
  if ((flags & kSampleIsCheck) != 0 && (flags & kSampleHasStackCopy) != 0)
    CheckAgreement(parts);
  return CallsiteInside(parts.record.outer_hash, parts.keys);
}

// The callsite of `keys` inside of the stack with this hash.
CallsiteId Target::CallsiteInside(uint64_t outer_hash, std::span<const uint64_t> keys) {
  if (outer_hash == kEmptyStackHash)
    return InternStack(keys);
  const auto known = stacks_.find(outer_hash);
  if (known != stacks_.end())
    return ExtendKnownStack(known->second, outer_hash, keys);
  // On its way when the stacks were forgotten: it means what it meant then.
  const auto previous = previous_stacks_.find(outer_hash);
  if (previous != previous_stacks_.end())
    return ExtendStack(previous->second, keys);
  // The record that brought the outer frames was lost: have every stack sent anew.
  ++profile_.quality.unknown_stacks;
  memory_->engine().control.known_stacks_epoch.fetch_add(1, std::memory_order_release);
  return NamedStack("[stack lost]");
}

bool Target::IsSettled() const {
  return last_event_ns_ > profile_.process.start_ns + kSettledNs;
}

CallsiteId Target::UnwindCopy(const SampleParts& parts) {
  Quality& quality = profile_.quality;
  ++quality.copied_samples;
  if (IsSettled())
    ++quality.settled_copies;
  const uint64_t begin = MonotonicNs();
  UnwoundStack unwound = unwinder_->Unwind(
      CopyOf(parts), kMaxFrames - std::min(parts.keys.size(), kMaxFrames - 1),
      UnwindMode::kCached);
  ForgetReplacedCode();  // before the new rules are published
  RuleTable& rules = memory_->engine().rules;
  for (const auto& [key, rule] : unwound.rules)
    rules.Insert(key, rule);
  quality.unwind_time_us += (MonotonicNs() - begin) / 1000;
  std::vector<uint64_t> keys = parts.keys;
  keys.insert(keys.end(), unwound.keys.begin(), unwound.keys.end());
  if (unwound.stop == StopReason::kAnchor)
    return CallsiteInside(parts.record.outer_hash, keys);
  if (unwound.stop == StopReason::kTruncatedCopy || unwound.stop == StopReason::kTooDeep)
    ++quality.truncated_stacks;
  else if (unwound.stop != StopReason::kComplete)
    ++quality.unwind_errors;
  return InternStack(keys);
}

void Target::CheckAgreement(const SampleParts& parts) {
  const UnwoundStack unwound =
      unwinder_->Unwind(CopyOf(parts), kMaxFrames, UnwindMode::kFresh);
  if (unwound.stop == StopReason::kTruncatedCopy)
    return;  // nothing to compare with
  ++profile_.quality.checked_samples;
  if (unwound.keys == parts.keys)
    ++profile_.quality.agreed_samples;
  else
    ForgetCode();
}

CallsiteId Target::InternStack(std::span<const uint64_t> keys) {
  const CallsiteId callsite = ExtendKnownStack(kNoId, kEmptyStackHash, keys);
  return callsite != kNoId ? callsite : NamedStack("[stack lost]");
}

// The callsite of `keys`, innermost first, inside of `outer`.
CallsiteId Target::ExtendStack(CallsiteId outer, std::span<const uint64_t> keys) {
  for (size_t i = keys.size(); i-- > 0;)
    outer = interner_->InternCallsite(outer, FrameOfKey(keys[i]));
  return outer;
}

// The same for a stack that clients may refer to from now on.
CallsiteId Target::ExtendKnownStack(CallsiteId outer,
                                    uint64_t outer_hash,
                                    std::span<const uint64_t> keys) {
  if (stacks_.size() >= kMaxStacks)
    ForgetStacks();
  uint64_t hash = outer_hash;
  for (size_t i = keys.size(); i-- > 0;) {
    hash = ExtendStackHash(hash, keys[i]);
    const auto known = stacks_.find(hash);
    if (known != stacks_.end()) {
      outer = known->second;
      continue;
    }
    const uint64_t replacements = replacements_seen_;
    outer = interner_->InternCallsite(outer, FrameOfKey(keys[i]));
    if (replacements_seen_ != replacements)
      return ExtendStack(outer, keys.first(i));  // of code that is gone
    stacks_.emplace(hash, outer);
  }
  return outer;
}

FrameId Target::FrameOfKey(uint64_t key) {
  const auto known = frames_.find(key);
  if (known != frames_.end())
    return known->second;
  const uint64_t pc = key - 1;
  const std::optional<CodeLocation> location = address_space_->FindOrRefresh(pc);
  ForgetReplacedCode();
  if (!location)
    ++profile_.quality.unmapped_frames;
  const FrameId frame = location
                            ? interner_->InternFrame(location->mapping, location->rel_pc)
                            : interner_->InternFrame(kNoId, pc);
  if (frames_.size() >= kMaxFrameCache)
    frames_.clear();
  frames_.emplace(key, frame);
  return frame;
}

CallsiteId Target::NamedStack(const std::string& name) {
  return interner_->InternCallsite(kNoId, interner_->InternNamedFrame(name));
}

void Target::HandleModulesChanged() {
  const uint32_t epoch =
      memory_->client().ring.modules_epoch.load(std::memory_order_acquire);
  const Result<RefreshOutcome> outcome = address_space_->Refresh();
  if (!outcome.ok())
    return;  // the process is gone; what is known stays true for what was recorded
  // Other code may come to an empty place before anybody looks again.
  if (removals_seen_ != address_space_->removals())
    ForgetCode();
  removals_seen_ = address_space_->removals();
  ForgetReplacedCode();
  memory_->engine().control.rules_epoch.store(epoch, std::memory_order_release);
}

// Whoever read the maps anew: what was derived from code that is gone must not be used
// for the code that lies there now.
void Target::ForgetReplacedCode() {
  if (replacements_seen_ == address_space_->replacements())
    return;
  replacements_seen_ = address_space_->replacements();
  ForgetCode();
}

// Code was unloaded or a rule proved wrong: addresses may mean something else from now
// on.
void Target::ForgetCode() {
  memory_->engine().rules.Clear();
  unwinder_->ForgetRules();
  frames_.clear();
  ForgetStacks();
}

// Clients send all frames of every stack again; records on their way still mean the
// forgotten ones.
void Target::ForgetStacks() {
  if (reader_->position() < previous_stacks_end_ && previous_stacks_.size() < kMaxStacks)
    previous_stacks_.merge(stacks_);
  else
    previous_stacks_ = std::move(stacks_);
  stacks_.clear();
  previous_stacks_end_ = reader_->position() + reader_->pending_bytes();
  memory_->engine().control.known_stacks_epoch.fetch_add(1, std::memory_order_release);
}

void Target::PublishStackRegions() {
  const uint64_t now = clock_->last_ns();
  if (regions_published_ns_ != 0) {
    if (now - regions_published_ns_ < kRegionsNs || !address_space_->Refresh().ok())
      return;
  }
  ForgetReplacedCode();
  regions_published_ns_ = std::max<uint64_t>(now, 1);
  StackRegions& shared = memory_->engine().stack_regions;
  const auto& regions = address_space_->writable_regions();
  // Stacks are more often mapped late, above the executable and its heap: keep the
  // highest.
  const size_t count = std::min(regions.size(), kMaxStackRegions);
  const size_t first = regions.size() - count;
  shared.version.fetch_add(1, std::memory_order_acq_rel);
  for (size_t i = 0; i < count; ++i) {
    shared.regions[i].low.store(regions[first + i].start, std::memory_order_relaxed);
    shared.regions[i].high.store(regions[first + i].end, std::memory_order_relaxed);
  }
  shared.count.store(static_cast<uint32_t>(count), std::memory_order_relaxed);
  shared.version.fetch_add(1, std::memory_order_release);
}

void Target::Stop(TargetEnd end) {
  memory_->engine().control.active.store(0, std::memory_order_release);
  profile_.end = end;
}

void Target::UpdateTotals(HeapDump* dump) const {
  const ClientBlock& client = memory_->client();
  const uint32_t count = std::min<uint32_t>(
      client.ring.slot_count.load(std::memory_order_acquire), kMaxThreadSlots);
  for (uint32_t i = 0; i < count; ++i) {
    const ThreadSlot& slot = client.slots[i];
    const uint64_t calls = __atomic_load_n(&slot.calls, __ATOMIC_RELAXED);
    const uint64_t granted = __atomic_load_n(&slot.granted, __ATOMIC_RELAXED);
    const uint64_t left = __atomic_load_n(&slot.bytes_left, __ATOMIC_RELAXED);
    // The thread may be between its two writes, or lie.
    const uint64_t bytes = granted > left ? granted - left : 0;
    dump->exact_alloc_calls = Bounded(dump->exact_alloc_calls + Bounded(calls));
    dump->exact_alloc_bytes = Bounded(dump->exact_alloc_bytes + Bounded(bytes));
  }
}

HeapDump Target::DumpOfMalloc() const {
  HeapDump dump;
  dump.heap_name = kMallocHeapName;
  dump.original_sampling_interval = malloc_interval_;
  dump.sampling_interval = memory_->engine().control.interval.load();
  heap_->Snapshot(&dump);
  UpdateTotals(&dump);
  return dump;
}

void Target::UpdateDump() {
  if (memory_ == nullptr)
    return;  // released: the last dump stands
  profile_.unrecorded_heaps =
      custom_heaps_.FindPublished(memory_->client(), memory_->engine().heap_rules);
  std::vector<HeapDump> dumps = custom_heaps_.Snapshot(memory_->client());
  // A program can have heaps of its own and no hooks of malloc; that malloc's heap is
  // empty is worth saying only when there is nothing else.
  HeapDump malloc_dump = DumpOfMalloc();
  if (malloc_interval_ != 0 && (malloc_dump.exact_alloc_calls > 0 || dumps.empty()))
    dumps.insert(dumps.begin(), std::move(malloc_dump));
  const uint64_t now = MonotonicNs();
  for (HeapDump& dump : dumps) {
    dump.start_ns = previous_dump_ns_;
    dump.end_ns = now;
  }
  previous_dump_ns_ = now;
  profile_.heaps = std::move(dumps);
  const RingHeader& header = memory_->client().ring;
  Quality& quality = profile_.quality;
  quality.map_reparses = address_space_->refreshes();
  quality.corrupt_records = bad_records_ + reader_->corrupt_records();
  quality.lost_records = Bounded(header.lost_records.load(std::memory_order_relaxed));
  quality.lost_samples = Bounded(header.lost_samples.load(std::memory_order_relaxed));
  quality.threads_without_slot =
      header.threads_without_slot.load(std::memory_order_relaxed);
  quality.reports_without_slot =
      header.reports_without_slot.load(std::memory_order_relaxed);
  if (header.client_error.load(std::memory_order_relaxed) ==
      static_cast<uint32_t>(ClientError::kBlockTimeout))
    profile_.client_fault = ClientFault::kHitTimeout;
}

void Target::ReleaseRecorder() {
  heap_.reset();
  custom_heaps_ = HeapTable();
  labels_.reset();
  interner_.reset();
  unwinder_.reset();
  reader_.reset();
  memory_.reset();
  stacks_.clear();
  previous_stacks_.clear();
  frames_.clear();
}

}  // namespace heapprofd
