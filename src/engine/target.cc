#include "engine/target.h"

#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "engine/process_info.h"
#include "engine/sample_parts.h"

namespace heapprofd {
namespace {

constexpr uint64_t kResidentRing = uint64_t{1}
                                   << 20;  // bytes of the ring that stay resident
constexpr uint64_t kStuckNs = 2'000'000'000;
constexpr uint64_t kRegionsNs = 50'000'000;
constexpr uint64_t kAdaptNs = 100'000'000;
constexpr uint64_t kMaxInterval = uint64_t{1} << 40;
constexpr size_t kMaxCallsites = 8'000'000;
constexpr size_t kMaxStacks = 4'000'000;
constexpr size_t kMaxFrameCache = 1'000'000;

}  // namespace

Target::Target(pid_t pid, const SessionConfig& config, const TscClock* clock)
    : config_(config), clock_(clock) {
  profile_.process = DescribeProcess(pid);
  profile_.process.start_ns = MonotonicNs();
  previous_dump_ns_ = profile_.process.start_ns;
  interner_ = std::make_unique<CallsiteInterner>(&profile_);
  heap_ = std::make_unique<LiveHeap>();
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
  control.interval.store(config_.interval_bytes);
  control.when_full.store(static_cast<uint32_t>(config_.when_full));
  control.block_timeout_us.store(config_.block_timeout_us);
  control.check_period.store(config_.check_period);
  control.max_stack_copy.store(kDefaultStackCopy);
  control.active.store(1, std::memory_order_release);
  PublishStackRegions();
}

bool Target::Drain(size_t max_records, bool writers_gone) {
  bool did_read = false;
  for (size_t i = 0; i < max_records; ++i) {
    RingReader::Record record;
    const RingReader::Outcome outcome = reader_->Read(&record, writers_gone || IsStuck());
    if (outcome == RingReader::Outcome::kEmpty)
      break;
    did_read = true;
    if (outcome == RingReader::Outcome::kRecord)
      HandleRecord(record);
    ReleaseSpace();
  }
  reader_->PublishConsumed();
  if (did_read)
    reader_->Rewind(kResidentRing);
  return did_read;
}

void Target::DrainRest(bool writers_gone) {
  constexpr size_t kBatch = 10'000;
  const uint64_t limit = reader_->position() + memory_->ring_size();
  while (reader_->position() < limit && Drain(kBatch, writers_gone)) {
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
  if (config_.when_full == WhenFull::kDrop)
    AdaptInterval();
}

void Target::AdaptInterval() {
  const uint64_t lost =
      memory_->client().ring.lost_records.load(std::memory_order_relaxed);
  const bool is_pressed = lost != lost_seen_ || ring_fill() > 0.75;
  lost_seen_ = lost;
  const uint64_t now = clock_->last_ns();
  if (!is_pressed || now - interval_changed_ns_ < kAdaptNs)
    return;
  std::atomic<uint64_t>& interval = memory_->engine().control.interval;
  if (interval.load() < kMaxInterval)
    interval.store(interval.load() * 2);
  interval_changed_ns_ = now;
}

double Target::ring_fill() const {
  return static_cast<double>(reader_->pending_bytes()) /
         static_cast<double>(memory_->ring_size());
}

uint64_t Target::lost_records() const {
  return memory_ != nullptr
             ? memory_->client().ring.lost_records.load(std::memory_order_relaxed)
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
  const CallsiteId callsite = CallsiteOfSample(*parts);
  heap_->Allocate(parts->record.address, parts->record.size, parts->record.interval,
                  callsite, last_event_ns_);
}

void Target::HandleFree(std::span<const std::byte> payload, bool is_undo) {
  const std::optional<FreeRecord> record = ParseFree(payload);
  if (!record) {
    ++bad_records_;
    return;
  }
  last_event_ns_ = std::max(last_event_ns_, clock_->ToNs(record->tsc));
  if (is_undo)
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
  if (parts.record.stack_hash == 0 && (flags & kSampleHasStackCopy) != 0)
    return UnwindCopy(parts);
  if (parts.record.stack_hash == 0) {
    ++quality.truncated_stacks;
    return parts.keys.empty() ? NamedStack("[stack lost]") : InternStack(parts.keys);
  }
  ++quality.walked_samples;
  if ((flags & kSampleTooDeep) != 0)
    ++quality.truncated_stacks;
  if ((flags & kSampleCut) != 0)
    ++quality.unwind_errors;
  if ((flags & kSampleIsCheck) != 0 && (flags & kSampleHasStackCopy) != 0)
    CheckAgreement(parts);
  const auto known = stacks_.find(parts.record.stack_hash);
  if (known != stacks_.end())
    return known->second;
  if (parts.keys.empty()) {
    // On its way when the stacks were forgotten: it means what it meant then.
    const auto previous = previous_stacks_.find(parts.record.stack_hash);
    if (previous != previous_stacks_.end())
      return previous->second;
    // The record that brought the frames was lost: have every stack sent anew.
    ++quality.unknown_stacks;
    memory_->engine().control.known_stacks_epoch.fetch_add(1, std::memory_order_release);
    return NamedStack("[stack lost]");
  }
  if (stacks_.size() >= kMaxStacks)
    stacks_.clear();
  const CallsiteId callsite = InternStack(parts.keys);
  stacks_.emplace(parts.record.stack_hash, callsite);
  return callsite;
}

CallsiteId Target::UnwindCopy(const SampleParts& parts) {
  Quality& quality = profile_.quality;
  ++quality.copied_samples;
  const uint64_t begin = MonotonicNs();
  const StackCopy copy{
      .cursor = {.key = parts.copy.key, .sp = parts.copy.sp, .bp = parts.copy.bp},
      .bytes = parts.copy_bytes};
  UnwoundStack unwound =
      unwinder_->Unwind(copy, kMaxFrames - std::min(parts.keys.size(), kMaxFrames - 1),
                        UnwindMode::kCached);
  ForgetReplacedCode();  // before the new rules are published
  RuleTable& rules = memory_->engine().rules;
  for (const auto& [key, rule] : unwound.rules)
    rules.Insert(key, rule);
  quality.unwind_time_us += (MonotonicNs() - begin) / 1000;
  if (unwound.stop == StopReason::kTruncatedCopy || unwound.stop == StopReason::kTooDeep)
    ++quality.truncated_stacks;
  else if (unwound.stop != StopReason::kComplete)
    ++quality.unwind_errors;
  std::vector<uint64_t> keys = parts.keys;
  keys.insert(keys.end(), unwound.keys.begin(), unwound.keys.end());
  return InternStack(keys);
}

void Target::CheckAgreement(const SampleParts& parts) {
  const StackCopy copy{
      .cursor = {.key = parts.copy.key, .sp = parts.copy.sp, .bp = parts.copy.bp},
      .bytes = parts.copy_bytes};
  const UnwoundStack unwound = unwinder_->Unwind(copy, kMaxFrames, UnwindMode::kFresh);
  if (unwound.stop == StopReason::kTruncatedCopy)
    return;  // nothing to compare with
  ++profile_.quality.checked_samples;
  if (unwound.keys == parts.keys)
    ++profile_.quality.agreed_samples;
  else
    ForgetCode();
}

CallsiteId Target::InternStack(std::span<const uint64_t> keys) {
  CallsiteId callsite = kNoId;
  for (size_t i = keys.size(); i-- > 0;)
    callsite = interner_->InternCallsite(callsite, FrameOfKey(keys[i]));
  return callsite != kNoId ? callsite : NamedStack("[stack lost]");
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
  previous_stacks_ = std::move(stacks_);
  stacks_.clear();
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

void Target::UpdateTotals(HeapDump* dump) {
  const ClientBlock& client = memory_->client();
  const uint32_t count = std::min<uint32_t>(
      client.ring.slot_count.load(std::memory_order_acquire), kMaxThreadSlots);
  for (uint32_t i = 0; i < count; ++i) {
    const ThreadSlot& slot = client.slots[i];
    const uint64_t calls = __atomic_load_n(&slot.calls, __ATOMIC_RELAXED);
    const uint64_t granted = __atomic_load_n(&slot.granted, __ATOMIC_RELAXED);
    const uint64_t left = __atomic_load_n(&slot.bytes_left, __ATOMIC_RELAXED);
    dump->exact_alloc_calls += calls;
    dump->exact_alloc_bytes += granted - left;
  }
}

void Target::UpdateDump() {
  if (memory_ == nullptr)
    return;  // released: the last dump stands
  HeapDump dump;
  dump.heap_name = kMallocHeapName;
  dump.original_sampling_interval = config_.interval_bytes;
  dump.sampling_interval = memory_->engine().control.interval.load();
  dump.start_ns = previous_dump_ns_;
  dump.end_ns = MonotonicNs();
  heap_->Snapshot(&dump);
  UpdateTotals(&dump);
  previous_dump_ns_ = dump.end_ns;
  profile_.heaps.assign(1, std::move(dump));
  const RingHeader& header = memory_->client().ring;
  Quality& quality = profile_.quality;
  quality.map_reparses = address_space_->refreshes();
  quality.corrupt_records = bad_records_ + reader_->corrupt_records();
  quality.lost_records = header.lost_records.load(std::memory_order_relaxed);
  quality.lost_samples = header.lost_samples.load(std::memory_order_relaxed);
  quality.threads_without_slot =
      header.threads_without_slot.load(std::memory_order_relaxed);
}

void Target::ReleaseRecorder() {
  heap_.reset();
  interner_.reset();
  unwinder_.reset();
  reader_.reset();
  memory_.reset();
  stacks_.clear();
  frames_.clear();
}

}  // namespace heapprofd
