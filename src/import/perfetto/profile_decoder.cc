#include "import/perfetto/profile_decoder.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "trace/field_reader.h"
#include "trace/fields.h"

namespace heapprofd {
namespace {

using BlocksField = field::ProfilePacket::LiveBlocks;
using ShapeField = field::ProfilePacket::BlockShape;
using SampleField = field::ProfilePacket::HeapSample;
using DumpField = field::ProfilePacket::ProcessHeapSamples;

}  // namespace

struct ProfileDecoder::Sample {
  uint64_t callstack = 0;
  uint64_t allocated = 0;
  uint64_t freed = 0;
  uint64_t alloc_count = 0;
  uint64_t free_count = 0;
  bool is_peak = false;
  bool has_estimate = false;
  bool has_cumulative = false;
  DumpRows::CallsiteTotalsAtEnd cumulative;
  DumpRows::CallsiteEstimate estimate;
};

void ProfileDecoder::Do(const DecodeStep& step) {
  std::visit([this](const auto& kind) { Do(kind); }, step);
}

void ProfileDecoder::Do(NewGeneration /*step*/) {
  interned_ = Ids();
  ++generation_;
}

void ProfileDecoder::Do(const StackStep& step) {
  Ids& ids = step.is_interned_data ? interned_ : inline_;
  for (const StackStep::FrameId& frame : step.frames)
    Insert(ids.frames, frame.iid, frame.row);
  const auto is_callstack = [&](uint32_t field) {
    return step.is_interned_data ? field == field::InternedData::kCallstacks
                                 : field == field::ProfilePacket::kCallstacks;
  };
  FieldReader reader(step.message);  // what is wrong with it was counted by who read it
  while (reader.Next()) {
    if (is_callstack(reader.field()))
      AddCallstack(ids, reader.Bytes());
  }
  FlushStacks(ids);
}

void ProfileDecoder::Do(const SampleStep& step) {
  builder_->dumps().GoOn(step.dump);
  if (!AddSamples(step, heaps_[{step.upid, step.heap_name}]))
    builder_->decoding().stats().Count(StatId::kPacketParserError);
}

void ProfileDecoder::Insert(IidMap& map, uint64_t iid, uint32_t row) {
  if (row != kNoId && !map.Insert(iid, row))
    builder_->decoding().stats().Count(StatId::kInternedDataDuplicateId);
}

void ProfileDecoder::AddCallstack(Ids& ids, std::string_view message) {
  FieldReader reader(message);
  TraceStats& stats = builder_->decoding().stats();
  uint64_t iid = 0;
  bool is_empty = true;
  bool is_valid = true;
  while (reader.Next()) {
    if (reader.field() == field::Callstack::kIid) {
      iid = reader.Uint();
    } else if (reader.field() == field::Callstack::kFrameIds) {
      reader.Uints([&](uint64_t frame_iid) {
        const uint32_t frame = ids.frames.Find(frame_iid);
        is_valid &= frame != kNoId;
        is_empty = false;
        stacks_->Push(frame);
      });
    }
  }
  if (reader.is_malformed() || !is_valid) {
    stacks_->Drop();
    return stats.Count(is_valid ? StatId::kStackprofileParserError
                                : StatId::kStackprofileInvalidFrameId);
  }
  if (is_empty)
    stats.Count(StatId::kStackprofileEmptyCallstack);
  if (stacks_->End(iid))
    FlushStacks(ids);
}

void ProfileDecoder::FlushStacks(Ids& ids) {
  stacks_->Flush(
      [&](uint64_t iid, uint32_t callsite) { Insert(ids.callstacks, iid, callsite); });
}

uint32_t ProfileDecoder::FindCallstack(uint64_t iid) const {
  const uint32_t callsite = inline_.callstacks.Find(iid);
  return callsite != kNoId ? callsite : interned_.callstacks.Find(iid);
}

bool ProfileDecoder::ReadSample(std::string_view bytes, Sample& sample) {
  DumpRows::CallsiteEstimate& estimate = sample.estimate;
  const auto set_estimate = [&](auto& value, auto read) {
    value = read;
    sample.has_estimate = true;
  };
  const auto set_cumulative = [&](int64_t& value, uint64_t read) {
    value = Signed(read);
    sample.has_cumulative = true;
  };
  FieldReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case SampleField::kCallstackId:
        sample.callstack = reader.Uint();
        break;
      case SampleField::kSelfAllocated:
        sample.allocated = reader.Uint();
        break;
      case SampleField::kSelfFreed:
        sample.freed = reader.Uint();
        break;
      case SampleField::kAllocCount:
        sample.alloc_count = reader.Uint();
        break;
      case SampleField::kFreeCount:
        sample.free_count = reader.Uint();
        break;
      case SampleField::kSelfMax:
        sample.allocated = reader.Uint();
        sample.is_peak = true;
        break;
      case SampleField::kSelfMaxCount:
        sample.alloc_count = reader.Uint();
        sample.is_peak = true;
        break;
      case SampleField::kLiveBytesError:
        set_estimate(estimate.live_bytes_error, reader.Double());
        break;
      case SampleField::kLiveCountError:
        set_estimate(estimate.live_count_error, reader.Double());
        break;
      case SampleField::kAllocatedBytesError:
        set_estimate(estimate.allocated_bytes_error, reader.Double());
        break;
      case SampleField::kAllocCountError:
        set_estimate(estimate.alloc_count_error, reader.Double());
        break;
      case SampleField::kPeakBytes:
        set_estimate(estimate.peak_bytes, Signed(reader.Uint()));
        break;
      case SampleField::kPeakCount:
        set_estimate(estimate.peak_count, Signed(reader.Uint()));
        break;
      case SampleField::kSelfIdle:
        set_estimate(estimate.idle_bytes, Signed(reader.Uint()));
        break;
      case SampleField::kCumulativeAllocated:
        set_cumulative(sample.cumulative.alloc_size, reader.Uint());
        break;
      case SampleField::kCumulativeFreed:
        set_cumulative(sample.cumulative.free_size, reader.Uint());
        break;
      case SampleField::kCumulativeAllocCount:
        set_cumulative(sample.cumulative.alloc_count, reader.Uint());
        break;
      case SampleField::kCumulativeFreeCount:
        set_cumulative(sample.cumulative.free_count, reader.Uint());
        break;
      default:
        break;
    }
  }
  return !reader.is_malformed();
}

bool ProfileDecoder::AddSamples(const SampleStep& step, Heap& heap) {
  FieldReader reader(step.message);
  while (reader.Next()) {
    if (reader.field() == DumpField::kShapes && !AddShape(reader.Bytes(), step.upid))
      return false;
    if (reader.field() == DumpField::kLiveBlocks && !AddLiveBlocks(reader.Bytes()))
      return false;
    if (reader.field() != DumpField::kSamples)
      continue;
    Sample sample;
    if (!ReadSample(reader.Bytes(), sample))
      return false;
    if (sample.is_peak && step.peak_counts_are_wrong)
      sample.alloc_count = 0;
    AddSample(sample, step, heap);
  }
  return !reader.is_malformed();
}

bool ProfileDecoder::AddShape(std::string_view bytes, uint32_t upid) {
  DumpRows::CallsiteShape shape;
  uint64_t callstack = 0;
  uint64_t kind = 0;
  uint64_t log2 = 0;
  FieldReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case ShapeField::kCallstackId:
        callstack = reader.Uint();
        break;
      case ShapeField::kKind:
        kind = reader.Uint();
        break;
      case ShapeField::kLog2:
        log2 = reader.Uint();
        break;
      case ShapeField::kBytes:
        shape.size = Signed(reader.Uint());
        break;
      case ShapeField::kCount:
        shape.count = Signed(reader.Uint());
        break;
      case ShapeField::kBytesError:
        shape.size_error = reader.Double();
        break;
      case ShapeField::kCountError:
        shape.count_error = reader.Double();
        break;
      case ShapeField::kTid:
        shape.utid = builder_->processes().FindThread(Signed(reader.Uint()), upid);
        break;
      default:
        break;
    }
  }
  constexpr uint64_t kMaxLog2 = 62;  // both limits are numbers of SQL
  if (reader.is_malformed() || kind > static_cast<uint64_t>(ShapeKind::kAge))
    return false;
  shape.kind = static_cast<ShapeKind>(kind);
  shape.log2 = static_cast<uint8_t>(std::min(log2, kMaxLog2));
  const uint32_t callsite = callstack == 0 ? kNoId : FindCallstack(callstack);
  if (callsite != kNoId || callstack == 0)
    builder_->dumps().AddShape(callsite, shape);
  else
    builder_->decoding().stats().Count(StatId::kStackprofileInvalidCallstackId);
  return true;
}

// False, and none of them: the columns differ in length.
bool ProfileDecoder::AddLiveBlocks(std::string_view bytes) {
  std::vector<uint64_t> deltas;
  std::vector<uint64_t> sizes;
  std::vector<uint64_t> callstacks;
  const auto append_to = [](std::vector<uint64_t>& column) {
    return [&column](uint64_t value) { column.push_back(value); };
  };
  FieldReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == BlocksField::kAddressDelta)
      reader.Uints(append_to(deltas));
    else if (reader.field() == BlocksField::kSize)
      reader.Uints(append_to(sizes));
    else if (reader.field() == BlocksField::kCallstackId)
      reader.Uints(append_to(callstacks));
  }
  if (reader.is_malformed() || sizes.size() != deltas.size() ||
      callstacks.size() != deltas.size())
    return false;
  uint64_t address = 0;
  for (size_t i = 0; i < deltas.size(); ++i) {
    address += deltas[i];
    if (const uint32_t callsite = FindCallstack(callstacks[i]); callsite != kNoId)
      builder_->dumps().AddLiveBlock(callsite, address, sizes[i]);
    else
      builder_->decoding().stats().Count(StatId::kStackprofileInvalidCallstackId);
  }
  return true;
}

void ProfileDecoder::AddSample(const Sample& sample, const SampleStep& step, Heap& heap) {
  uint32_t slot = heap.slots.Find(sample.callstack);
  if (slot == kNoId) {
    slot = static_cast<uint32_t>(heap.totals.size());
    heap.totals.push_back({});
    heap.slots.Insert(sample.callstack, slot);
  }
  Totals& totals = heap.totals[slot];
  if (totals.callsite == kNoId || totals.generation != generation_) {
    // A counter goes on in a new generation if its stack is the same and nothing falls.
    const uint32_t callsite = FindCallstack(sample.callstack);
    if (callsite != totals.callsite || sample.allocated < totals.allocated ||
        sample.freed < totals.freed || sample.alloc_count < totals.alloc_count ||
        sample.free_count < totals.free_count)
      totals = Totals{.callsite = callsite};
    totals.generation = generation_;
  }
  if (totals.callsite == kNoId) {
    builder_->decoding().stats().Count(StatId::kStackprofileInvalidCallstackId);
    return;
  }
  if (sample.is_peak)
    builder_->trace().dumps[step.dump].is_peak = true;
  AddRows(sample, step, totals);
  if (sample.is_peak && sample.has_cumulative)
    builder_->dumps().AddCumulative(totals.callsite, sample.cumulative, sample.estimate);
  else if (sample.has_estimate)
    builder_->dumps().AddEstimate(totals.callsite, sample.estimate);
}

void ProfileDecoder::AddRows(const Sample& sample,
                             const SampleStep& step,
                             Totals& totals) {
  const auto difference = [](uint64_t now, uint64_t before) {
    return now >= before ? Signed(now - before) : -Signed(before - now);
  };
  const int64_t alloc_count = difference(sample.alloc_count, totals.alloc_count);
  const int64_t allocated = difference(sample.allocated, totals.allocated);
  const int64_t free_count = difference(sample.free_count, totals.free_count);
  const int64_t freed = difference(sample.freed, totals.freed);
  const bool has_fallen = alloc_count < 0 || allocated < 0 || free_count < 0 || freed < 0;
  if (has_fallen && !sample.is_peak) {
    builder_->decoding().stats().Add(StatId::kHeapprofdMalformedPacket, step.upid, 1);
    return;
  }
  builder_->dumps().AddAllocation(totals.callsite, alloc_count, allocated);
  if (!step.frees_are_unknown)
    builder_->dumps().AddAllocation(totals.callsite, -free_count, -freed);
  totals.allocated = sample.allocated;
  totals.freed = sample.freed;
  totals.alloc_count = sample.alloc_count;
  totals.free_count = sample.free_count;
}

}  // namespace heapprofd
