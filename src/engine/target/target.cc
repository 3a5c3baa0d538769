#include "engine/target/target.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <utility>

#include "base/files/proc_files.h"
#include "engine/process_info.h"
#include "engine/root_directory.h"
#include "engine/target/exact_totals.h"
#include "engine/target/sample_parts.h"
#include "profile/estimate.h"

namespace heapprofd {
namespace {

constexpr uint64_t kResidentRing = uint64_t{1} << 20;  // bytes that stay resident
constexpr uint64_t kStuckNs = 2'000'000'000;
constexpr uint64_t kStuckCpuNs = 100'000'000;  // of the process meanwhile
constexpr uint64_t kStuckAtMostNs = 30'000'000'000;
constexpr uint64_t kAdaptNs = 100'000'000;
constexpr uint64_t kNeverInterval = uint64_t{1} << 60;  // no allocation is ever sampled
constexpr size_t kRecordsPerLook = 16;                  // at the clock

// Whether an interval of one byte stays one, and nobody else is shown what is in the
// ring.
bool RecordsAll(const SessionConfig& config) {
  return config.when_full == WhenFull::kBlock && config.adaptive_threshold_bytes == 0 &&
         !config.stream_allocations;
}

}  // namespace

Target::Target(pid_t pid, const SessionConfig& config, const TscClock* clock)
    : config_(config),
      clock_(clock),
      account_(&UserBudget::OfEngine(), RealUser(pid).value_or(kNobody)),
      held_to_account_(UserOf(pid)),
      root_(OpenRoot(pid)),
      own_pid_(InnerId(pid)),
      follows_children_(config.follow_children) {
  config_.targets = {};
  config_.skip_symbol_prefixes = {};
  profile_.process = DescribeProcess(pid);
  profile_.process.start_ns = MonotonicNs();
  previous_dump_ns_ = profile_.process.start_ns;
  interner_ = std::make_unique<CallsiteInterner>(&profile_);
  heap_ = std::make_unique<LiveHeap>();
  called_ = std::make_unique<CalledFunctions>(&profile_, interner_.get());
  labels_ = std::make_unique<LabelledCallsites>(&profile_, interner_.get());
  threads_ = std::make_unique<ThreadTable>(&profile_, own_pid_ == pid);
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
  control.reports_all_frees.store(RecordsAll(config_) && malloc_interval_ == 1 ? 1 : 0);
  control.look_at_exit.store(config_.ask_allocator ? 1 : 0);
  control.heartbeat.store(MonotonicNs());
  control.active.store(1, std::memory_order_release);
  PublishStackRegions();
}

void Target::PublishHeapRules() {
  HeapRules& rules = memory_->engine().heap_rules;
  FillHeapRules(config_.heaps, config_.interval_bytes, &rules);
  rules.max_interval = config_.adaptive_max_interval_bytes != 0
                           ? std::min(config_.adaptive_max_interval_bytes, kMaxInterval)
                           : kMaxInterval;
  malloc_interval_ = HeapIntervalByName(rules, kMallocHeapName);
}

// A turn ends after a time: records that are dear to handle must not keep the engine from
// its other targets.
size_t Target::Drain(size_t max_records, bool writers_gone, uint64_t turn_ns) {
  const uint64_t turn_end_ns = MonotonicNs() + turn_ns;
  if (is_modules_change_late_)
    HandleModulesChanged();
  size_t count = 0;
  uint64_t dear_steps = DearSteps();
  bool is_over = false;
  is_behind_ = true;
  while (count < max_records && !is_over) {
    RingReader::Record record;
    RingReader::Outcome outcome = reader_->Read(&record, writers_gone);
    if (outcome == RingReader::Outcome::kEmpty && !writers_gone && IsStuck())
      outcome = reader_->Read(&record, /*writers_gone=*/true);
    if (outcome == RingReader::Outcome::kEmpty) {
      is_behind_ = false;
      break;
    }
    reader_->LookAhead([this](RecordType type, auto words) { Prefetch(type, words); });
    if (outcome == RingReader::Outcome::kRecord)
      HandleRecord(record);
    else if (writers_gone)
      ++skipped_at_end_;
    ReleaseSpace();
    ++count;
    const bool was_dear = std::exchange(dear_steps, DearSteps()) != dear_steps;
    is_over = (was_dear || count % kRecordsPerLook == 0) && MonotonicNs() >= turn_end_ns;
  }
  reader_->PublishConsumed();
  if (count > 0) {
    reader_->Rewind(kResidentRing);
    account_.Set(EstimatedBytes());
  }
  reader_->WakeForFreeSpace();
  return count;
}

// Of a record that is read soon: the live block and the stack.
void Target::Prefetch(RecordType type, std::span<const uint64_t> words) {
  constexpr size_t kAddress = offsetof(SampleRecord, address) / 8;
  constexpr size_t kStack = offsetof(SampleRecord, outer_hash) / 8;
  static_assert(offsetof(FreeRecord, address) / 8 == kAddress);
  static_assert(kStack < RingReader::kWordsAhead);
  if ((type == RecordType::kSample || type == RecordType::kFree) &&
      words.size() > kAddress)
    heap_->Prefetch(words[kAddress]);
  if (type == RecordType::kSample && words.size() > kStack)
    stacks_.Prefetch(words[kStack]);
}

uint64_t Target::RestEnd() const {
  return reader_->position() + memory_->ring_size();
}

bool Target::DrainRest(uint64_t end, bool writers_gone, uint64_t turn_ns) {
  constexpr size_t kBatch = 10'000;
  return reader_->position() >= end || Drain(kBatch, writers_gone, turn_ns) == 0 ||
         !is_behind_;
}

void Target::LoseRest(bool writers_gone) {
  constexpr uint64_t kAtMost = 1'000'000;  // some 0.1 s
  RingReader::Record record;
  for (uint64_t i = 0; i < kAtMost; ++i) {
    const RingReader::Outcome outcome = reader_->Read(&record, writers_gone);
    if (outcome == RingReader::Outcome::kEmpty)
      return;
    unread_records_ += outcome == RingReader::Outcome::kRecord ? 1 : 0;
    if (writers_gone && outcome == RingReader::Outcome::kSkipped)
      ++skipped_at_end_;
  }
  ++unread_records_;
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
}

// A record that stays reserved although time passes: its writer left the hook by longjmp,
// or is stopped. Where processors are short a writer may wait for one for seconds: it is
// given up when its process has run meanwhile.
bool Target::IsStuck() {
  const uint64_t now = clock_->last_ns();
  if (reader_->position() != stuck_position_ || reader_->pending_bytes() == 0) {
    stuck_position_ = reader_->position();
    stuck_since_ns_ = now;
    stuck_cpu_ns_ = std::nullopt;
    return false;
  }
  if (!stuck_cpu_ns_)
    stuck_cpu_ns_ = ProcessCpuNs(pid());
  const uint64_t stuck_ns = now - stuck_since_ns_;
  return stuck_ns > kStuckAtMostNs ||
         (stuck_ns > kStuckNs && ProcessCpuNs(pid()) - *stuck_cpu_ns_ >= kStuckCpuNs);
}

void Target::Beat() {
  memory_->engine().control.heartbeat.store(MonotonicNs(), std::memory_order_relaxed);
}

void Target::Tick(uint64_t end_ns) {
  Beat();
  const uint64_t now = config_.ask_allocator ? MonotonicNs() : end_ns;
  if (now < end_ns)
    LookAtExit(end_ns - now);
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
  if (interval.load() < memory_->engine().heap_rules.max_interval)
    interval.store(std::min(interval.load() * 2, kMaxInterval));
  std::atomic<uint32_t>& shift = memory_->engine().heap_rules.interval_shift;
  if (shift.load() < 40)
    shift.fetch_add(1);
  interval_changed_ns_ = now;
}

double Target::ring_fill() const {
  return static_cast<double>(reader_->pending_bytes()) /
         static_cast<double>(memory_->ring_size());
}

bool Target::has_client() const {
  return memory_->client().ring.slot_count.load(std::memory_order_relaxed) != 0;
}

uint64_t Target::confined_children() const {
  constexpr uint32_t kMax = 1'000'000;
  return std::min(
      memory_->client().ring.confined_children.load(std::memory_order_relaxed), kMax);
}

uint64_t Target::lost_records() const {
  return memory_ != nullptr
             ? unread_records_ + BoundedCounter(memory_->client().ring.lost_records.load(
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
  if (events_ != nullptr)
    ReportAllocation(parts->record);
  CallsiteId callsite = CallsiteOfSample(*parts);
  if (profile_.callsites.size() <= kMaxCallsites)
    callsite = called_->Intern(callsite, parts->record.function);
  if (parts->labels != 0 && profile_.callsites.size() <= kMaxCallsites)
    callsite = labels_->Intern(callsite, parts->labels, memory_->client());
  if (!HasRoom(parts->record.heap_id)) {
    ++profile_.quality.refused_samples;
    return;
  }
  const SampledAllocation allocation{.address = parts->record.address,
                                     .size = parts->record.size,
                                     .interval = parts->record.interval,
                                     .callsite = callsite,
                                     .thread = threads_->Intern(parts->record.thread_id)};
  if (parts->record.heap_id == kMallocHeapId)
    heap_->Allocate(allocation, last_event_ns_);
  else
    AllocateIn(parts->record.heap_id, allocation);
}

void Target::ReportAllocation(const SampleRecord& record) {
  const Estimate estimate = EstimateOfSample(record.size, record.interval);
  events_->OnAllocation(pid(), {.address = record.address,
                                .size = record.size,
                                .sample_size = static_cast<uint64_t>(estimate.bytes),
                                .time_ns = last_event_ns_,
                                .heap_id = record.heap_id});
}

void Target::AllocateIn(uint8_t heap_id, SampledAllocation allocation) {
  CustomHeap& heap =
      custom_heaps_.Get(heap_id, memory_->client(), memory_->engine().heap_rules);
  if (!custom_heaps_.MayAdd(heap, allocation.callsite))
    allocation.callsite = NamedStack("[too many stacks]");
  heap.Allocate(allocation, last_event_ns_);
}

void Target::HandleFree(std::span<const std::byte> payload, bool is_undo) {
  const std::optional<FreeRecord> record = ParseFree(payload);
  if (!record) {
    ++bad_records_;
    return;
  }
  last_event_ns_ = std::max(last_event_ns_, clock_->ToNs(record->tsc));
  if (events_ != nullptr && !is_undo)
    events_->OnFree(pid(), record->address, record->heap_id);
  if (record->heap_id != kMallocHeapId) {
    if (CustomHeap* heap = custom_heaps_.Find(record->heap_id))
      heap->Free(record->address);
  } else if (is_undo && heap_->growth_bytes() != 0 && !HasRoom(kMallocHeapId))
    ++profile_.quality.refused_samples;
  else if (is_undo)
    heap_->UndoRealloc(record->address, record->thread_id, last_event_ns_);
  else if (record->is_realloc != 0)
    heap_->FreeForRealloc(record->address, record->thread_id);
  else
    heap_->Free(record->address);
}

void Target::Stop(TargetEnd end) {
  std::atomic<uint32_t>& active = memory_->engine().control.active;
  active.store(0, std::memory_order_release);
  syscall(SYS_futex, &active, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  reader_->WakeAll();
  profile_.end = end;
}

void Target::ReleaseRecorder() {
  const bool needs_root =
      address_space_->HasCodeWithoutFile() || profile_.quality.unmapped_frames > 0;
  heap_.reset();
  custom_heaps_ = HeapTable();
  called_.reset();
  labels_.reset();
  threads_.reset();
  interner_.reset();
  unwinder_.reset();
  reader_.reset();
  KeepForChildren();
  memory_.reset();
  address_space_->Release();
  if (!needs_root || !MayKeepRoot())
    root_.reset();
  stacks_ = {};
  previous_stacks_ = {};
  frames_ = {};
  config_ = {};
  profile_.frames.shrink_to_fit();  // as much as they are accounted for
  profile_.callsites.shrink_to_fit();
  account_.Set(EstimatedBytes());
}

}  // namespace heapprofd
