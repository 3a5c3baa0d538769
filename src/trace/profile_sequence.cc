#include "trace/profile_sequence.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <protozero/pbf_writer.hpp>

#include "trace/callstack_bytes.h"
#include "trace/fields.h"
#include "trace/framing.h"
#include "trace/limits.h"
#include "trace/service_packets.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

constexpr uint32_t kProfileSequence = 2;  // no other packets have this one

// `written`: what earlier dumps of the heap have told; a peak must take back what it no
// longer holds.
std::vector<CallsiteId> SortedCallsites(const HeapDump& dump,
                                        DumpMode mode,
                                        const FlatMap<uint64_t>& written) {
  std::vector<CallsiteId> ids;
  for (const auto& [id, totals] : dump.callsites)
    ids.push_back(id);
  if (mode == DumpMode::kPeak) {
    for (const auto& [id, estimate] : dump.peak)
      ids.push_back(id);
    written.ForEach(
        [&](uint64_t id, uint64_t) { ids.push_back(static_cast<CallsiteId>(id)); });
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }
  return ids;
}

// Stands for the heaps of a target that reported none, so that it is named nevertheless.
HeapDump DumpOfNothing(const TargetProfile& profile) {
  HeapDump dump;
  dump.heap_name = kMallocHeapName;
  dump.start_ns = dump.end_ns = profile.process.start_ns;
  return dump;
}

// The first time from `time` on that nobody has, in a map of what is taken: begins of
// runs with their ends. Programs may ask for as many dumps at a time as they like.
uint64_t TakeFreeTime(std::map<uint64_t, uint64_t>& taken, uint64_t time) {
  auto after = taken.upper_bound(time);
  auto run = taken.end();
  if (after != taken.begin() && std::prev(after)->second >= time) {
    run = std::prev(after);
    time = run->second;
    ++run->second;
  } else {
    run = taken.emplace_hint(after, time, time + 1);
  }
  if (after != taken.end() && after->first == run->second) {
    run->second = after->second;
    taken.erase(after);
  }
  return time;
}

}  // namespace

Status ProfileSequence::WriteHeaps(const TargetProfile& profile,
                                   std::span<const HeapDump> heaps,
                                   uint64_t target_id,
                                   const DumpFlags& flags) {
  if (!has_begun_) {
    InternedBatch batch;
    for (const uint32_t kind :
         {field::InternedData::kBuildIds, field::InternedData::kMappingPaths,
          field::InternedData::kFunctionNames}) {
      pbf_writer entry(batch.writer(), kind);
      entry.add_uint64(field::InternedString::kIid, 0);
      entry.add_bytes(field::InternedString::kStr, "");
    }
    HPD_TRY(WritePacket(field::TracePacket::kInternedData, batch.data()));
  }
  Target& target = targets_[target_id];
  target.iids.mappings.resize(profile.mappings.size());
  target.iids.frames.resize(profile.frames.size());
  if (target.last_dump_ns.empty()) {  // earlier dumps may be in another trace
    for (const HeapDump& dump : heaps)
      target.last_dump_ns.emplace(dump.heap_name, profile.process.start_ns);
  }
  if (heaps.empty())
    return WriteHeap(profile, DumpOfNothing(profile), target, flags);
  for (const HeapDump& dump : heaps)
    HPD_TRY(WriteHeap(profile, dump, target, flags));
  return {};
}

// A dump of the peak is of that moment; its interval begins with the dump before it, as
// any other's does. Moments come from records, and one that was held up on its way to us
// may be of a time before the last dump: what was not seen there is told to be later.
DumpInterval ProfileSequence::IntervalOf(const TargetProfile& profile,
                                         const HeapDump& dump,
                                         Target& target,
                                         DumpMode mode) {
  const bool is_peak = mode == DumpMode::kPeak && dump.peak_ns != 0;
  uint64_t& last_ns =
      target.last_dump_ns.try_emplace(dump.heap_name, dump.start_ns).first->second;
  const uint64_t end_ns =
      TakeFreeTime(dump_times_[profile.process.pid],
                   std::max(last_ns, is_peak ? dump.peak_ns : dump.end_ns));
  return {.start_ns = std::exchange(last_ns, end_ns), .end_ns = end_ns};
}

Status ProfileSequence::WriteFullPart(std::string& message, const std::string& header) {
  if (message.size() < kPacketTarget)
    return {};
  Status status = WriteProfilePacket(message, /*is_continued=*/true);
  message = header;
  return status;
}

Status ProfileSequence::WriteHeap(const TargetProfile& profile,
                                  const HeapDump& dump,
                                  Target& target,
                                  const DumpFlags& flags) {
  const std::string header =
      DumpHeader(profile, dump, IntervalOf(profile, dump, target, flags.mode), flags);
  auto& iids = target.callstack_iids[dump.heap_name];
  const std::vector<CallsiteId> callsites = SortedCallsites(dump, flags.mode, iids);
  auto& totals = target.totals[dump.heap_name];
  std::vector<CallsiteId> new_callsites;
  std::string message = header;
  for (const CallsiteId id : callsites) {
    const auto [entry, is_new] = iids.Insert(id, 0);
    if (is_new) {
      *entry = ids_.Next();
      new_callsites.push_back(id);
    }
    const uint64_t iid = *entry;
    const auto peak = dump.peak.find(id);
    const auto idle = dump.idle.callsites.find(id);
    const SampleExtras extras{
        .peak = peak != dump.peak.end() ? &peak->second : nullptr,
        .idle = idle != dump.idle.callsites.end() ? &idle->second : nullptr};
    const auto cumulative = dump.callsites.find(id);
    if (flags.mode == DumpMode::kPeak)
      AppendPeakSample(
          message, iid, extras,
          cumulative != dump.callsites.end() ? cumulative->second : CallsiteTotals());
    else
      AppendSample(message, iid, cumulative->second, extras,
                   *totals.Insert(id, {}).first);
    HPD_TRY(WriteFullPart(message, header));
  }
  for (size_t id = 0; id < dump.threads.size(); ++id) {
    if (dump.threads[id].allocated.count == 0)
      continue;
    AppendThread(message, profile.threads[id], dump.threads[id]);
    HPD_TRY(WriteFullPart(message, header));
  }
  for (const ShapeRow& row : dump.shapes) {
    const uint64_t* const iid = iids.Find(row.callsite);
    if (iid != nullptr || row.callsite == kNoId)
      AppendShape(message, iid != nullptr ? *iid : 0, row,
                  row.thread == kUnknownThread ? 0 : profile.threads[row.thread].tid);
    HPD_TRY(WriteFullPart(message, header));
  }
  HPD_TRY(WriteBlocks(message, header, dump, iids));
  HPD_TRY(WriteProfilePacket(message, /*is_continued=*/true));
  HPD_TRY(WriteInterned(profile, dump, target, new_callsites));
  return WriteProfilePacket("", /*is_continued=*/false);
}

// Their callsites are among the dump's, which have their ids.
Status ProfileSequence::WriteBlocks(std::string& message,
                                    const std::string& header,
                                    const HeapDump& dump,
                                    FlatMap<uint64_t>& iids) {
  std::span<const LiveBlock> rest = dump.blocks;
  while (!rest.empty()) {
    const auto blocks = rest.first(std::min(kBlocksTogether, rest.size()));
    rest = rest.subspan(blocks.size());
    std::vector<uint64_t> of_blocks;
    for (const LiveBlock& block : blocks)
      of_blocks.push_back(*iids.Find(block.callsite));
    AppendBlocks(message, blocks, of_blocks);
    HPD_TRY(WriteFullPart(message, header));
  }
  return {};
}

Status ProfileSequence::WriteInterned(const TargetProfile& profile,
                                      const HeapDump& dump,
                                      Target& target,
                                      const std::vector<CallsiteId>& callsites) {
  if (callsites.empty())
    return {};
  FlatMap<uint64_t>& iids = target.callstack_iids[dump.heap_name];
  InternedBatch batch;
  CallstackBytes frames(profile.callsites);
  std::string callstack;
  for (const CallsiteId id : callsites) {
    for (const CallsiteId at : frames.Begin(id)) {
      frames.Add(at,
                 ids_.FrameOf(profile, profile.callsites[at].frame, target.iids, batch));
      HPD_TRY(WriteBatch(batch, kPacketTarget));
    }
    callstack.clear();
    pbf_writer(callstack).add_uint64(field::Callstack::kIid, *iids.Find(id));
    callstack += frames.bytes();
    batch.writer().add_message(field::InternedData::kCallstacks, callstack);
    HPD_TRY(WriteBatch(batch, kPacketTarget));
  }
  return WriteBatch(batch, /*min_bytes=*/1);
}

Status ProfileSequence::WriteBatch(InternedBatch& batch, size_t min_bytes) {
  if (batch.data().size() < min_bytes)
    return {};
  Status status = WritePacket(field::TracePacket::kInternedData, batch.data());
  batch.Clear();
  return status;
}

Status ProfileSequence::WritePacket(uint32_t field, const std::string& message) {
  std::string packet;
  pbf_writer writer(packet);
  writer.add_uint64(field::TracePacket::kTimestamp, BootTimeNs());
  writer.add_uint32(field::TracePacket::kTrustedPacketSequenceId, kProfileSequence);
  if (!has_begun_) {
    has_begun_ = true;
    writer.add_uint32(field::TracePacket::kSequenceFlags, kIncrementalStateCleared);
  }
  writer.add_message(field, message);
  return file_->Append(packet);
}

Status ProfileSequence::WriteProfilePacket(const std::string& process_dump,
                                           bool is_continued) {
  std::string message;
  pbf_writer writer(message);
  if (!process_dump.empty())
    writer.add_message(field::ProfilePacket::kProcessDumps, process_dump);
  if (is_continued)
    writer.add_bool(field::ProfilePacket::kContinued, true);
  writer.add_uint64(field::ProfilePacket::kIndex, next_index_++);
  return WritePacket(field::TracePacket::kProfilePacket, message);
}

}  // namespace heapprofd
