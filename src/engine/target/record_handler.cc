#include "engine/target/record_handler.h"

#include <cstddef>
#include <optional>

#include "engine/target/sample_parts.h"
#include "engine/target/target_text.h"
#include "profile/estimate.h"

namespace heapprofd {

RecordHandler::RecordHandler(const Parts& parts, bool knows_threads)
    : parts_(parts), threads_(parts.profile, knows_threads) {}

bool RecordHandler::Handle(const RingReader::Record& record) {
  switch (record.type) {
    case RecordType::kSample:
      return HandleSample(record.payload);
    case RecordType::kFree:
      return HandleFree(record.payload);
    case RecordType::kReallocFailed:
      return HandleUndo(record.payload);
    case RecordType::kModulesChanged:
      parts_.stacks->OnModulesChanged();
      return true;
    case RecordType::kMark:
      return HandleMark(record.payload, /*is_dump=*/false);
    case RecordType::kDumpNow:
      return HandleMark(record.payload, /*is_dump=*/true);
  }
  return false;
}

void RecordHandler::Prefetch(RecordType type, std::span<const uint64_t> words) const {
  constexpr size_t kAddress = offsetof(SampleRecord, address) / 8;
  constexpr size_t kStack = offsetof(SampleRecord, outer_hash) / 8;
  static_assert(offsetof(FreeRecord, address) / 8 == kAddress);
  static_assert(kStack < RingReader::kWordsAhead);
  if ((type == RecordType::kSample || type == RecordType::kFree) &&
      words.size() > kAddress)
    parts_.heaps->Prefetch(words[kAddress]);
  if (type == RecordType::kSample && words.size() > kStack)
    parts_.stacks->Prefetch(words[kStack]);
}

bool RecordHandler::HandleSample(std::span<const std::byte> payload) {
  const std::optional<SampleParts> sample = ParseSample(payload);
  if (!sample)
    return false;
  NoteTime(sample->record.tsc);
  Quality& quality = parts_.profile->quality;
  ++quality.samples;
  const bool is_settled = IsSettled();
  if (is_settled)
    ++quality.settled_samples;
  if (events_ != nullptr)
    ReportAllocation(sample->record);
  CallsiteId callsite =
      parts_.stacks->CallsiteOf(*sample, parts_.account->has_memory(), is_settled);
  const uint8_t heap_id = sample->record.heap_id;
  if (!HasRoom(heap_id)) {
    ++quality.refused_samples;
    return true;
  }
  const ThreadId thread = threads_.Intern(sample->record.thread_id);
  if (!parts_.heaps->MayAdd(heap_id, callsite))
    callsite = parts_.stacks->TooManyStacks();
  parts_.heaps->Allocate(heap_id,
                         {.address = sample->record.address,
                          .size = sample->record.size,
                          .interval = sample->record.interval,
                          .callsite = callsite,
                          .thread = thread},
                         last_event_ns_);
  return true;
}

void RecordHandler::ReportAllocation(const SampleRecord& record) {
  const Estimate estimate = EstimateOfSample(record.size, record.interval);
  events_->OnAllocation(parts_.profile->process.pid,
                        {.address = record.address,
                         .size = record.size,
                         .sample_size = static_cast<uint64_t>(estimate.bytes),
                         .time_ns = last_event_ns_,
                         .heap_id = record.heap_id});
}

bool RecordHandler::HandleFree(std::span<const std::byte> payload) {
  const std::optional<FreeRecord> record = ParseFree(payload);
  if (!record)
    return false;
  NoteTime(record->tsc);
  if (events_ != nullptr)
    events_->OnFree(parts_.profile->process.pid, record->address, record->heap_id);
  parts_.heaps->Free(
      *record, {.thread = threads_.Find(record->thread_id), .now_ns = last_event_ns_});
  return true;
}

bool RecordHandler::HandleUndo(std::span<const std::byte> payload) {
  const std::optional<FreeRecord> record = ParseFree(payload);
  if (!record)
    return false;
  NoteTime(record->tsc);
  if (record->heap_id == kMallocHeapId && parts_.heaps->GrowthBytes(kMallocHeapId) != 0 &&
      !HasRoom(kMallocHeapId))
    ++parts_.profile->quality.refused_samples;
  else
    parts_.heaps->UndoFree(*record, last_event_ns_);
  return true;
}

bool RecordHandler::HandleMark(std::span<const std::byte> payload, bool is_dump) {
  const std::optional<MarkRecord> record = ParseMark(payload);
  if (!record)
    return false;
  NoteTime(record->tsc);
  if (!is_dump)
    parts_.requests->KeepMark(
        {.time_ns = last_event_ns_, .name = TextFromTarget(record->name, kMarkNameSize)});
  else if (parts_.requests->MayDump())
    MakeDump();
  return true;
}

void RecordHandler::MakeDump() {
  ++dear_dumps_;
  parts_.dumper->UpdateAt(last_event_ns_);
  parts_.requests->KeepDump();
  // In a trace each heap's dump has a nanosecond of its own; what comes next, which may
  // have been read off the clock at the same time, comes after all of them.
  last_event_ns_ += parts_.profile->heaps.size();
}

bool RecordHandler::IsSettled() const {
  constexpr uint64_t kSettledNs = 1'000'000'000;  // most code has been seen after this
  return last_event_ns_ > parts_.profile->process.start_ns + kSettledNs;
}

}  // namespace heapprofd
