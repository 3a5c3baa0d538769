// Import takes a packet through four steps: what its header says (ReadHeader), the state
// of its sequence (UpdateState), its interned data (ImportInterned), then its data by
// field (ImportData), each to the importer of its kind; packets in a compressed packet go
// the same way. What needs the whole file waits for Finish: times, as clocks may come
// late, then symbols, then Java names.
#include "import/perfetto/trace_importer.h"

#include <optional>
#include <string>
#include <utility>

#include "import/perfetto/apply_deobfuscation.h"
#include "import/perfetto/art_metadata.h"
#include "import/perfetto/dump_counters.h"
#include "import/perfetto/end_importer.h"
#include "import/perfetto/heap_graph_importer.h"
#include "import/perfetto/inflate.h"
#include "import/perfetto/system_importer.h"
#include "trace/deobfuscation_messages.h"
#include "trace/fields.h"
#include "trace/framing.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

// Compressed packets of Perfetto hold at most some hundred kB each.
constexpr size_t kMaxCompressedPackets = size_t{64} << 20;

// Fields of TracePacket have at most four digits; numbers beyond are a hostile file's.
constexpr uint32_t kMaxCountedField = 10000;

void PushStacks(TraceBuilder& builder,
                const std::shared_ptr<ProfileDecoder>& decoder,
                StackStep step) {
  if (!step.frames.empty() || !step.message.empty())
    builder.decoding().Push(decoder, std::move(step));
}

}  // namespace

struct TraceImporter::Sequence {
  Sequence(TraceBuilder* builder,
           std::vector<DumpTimes>* times,
           HeapGraphQueue* heap_graphs)
      : decoder(std::make_shared<ProfileDecoder>(builder)),
        interned(builder),
        profile(builder, decoder, times),
        heap_graph(builder, heap_graphs) {}

  std::shared_ptr<ProfileDecoder> decoder;
  InternedTables interned;
  ProfileImporter profile;
  HeapGraphImporter heap_graph;
  bool is_valid = false;  // interned data count
  uint32_t clock = kClockBoottime;
};

struct TraceImporter::PacketHeader {
  std::optional<uint64_t> sequence;
  std::optional<int64_t> timestamp;
  std::optional<uint32_t> clock;
  std::optional<uint32_t> default_clock;
  bool is_cleared = false;
  bool has_loss = false;
};

TraceImporter::TraceImporter(TraceBuilder* builder, const ByteSource* source)
    : builder_(builder),
      heap_graphs_(builder),
      no_sequence_(std::make_unique<Sequence>(builder, &dump_times_, &heap_graphs_)),
      symbols_(builder),
      source_(source) {}

TraceImporter::~TraceImporter() = default;

// NOLINTNEXTLINE(readability-function-size)
TraceImporter::PacketHeader TraceImporter::ReadHeader(std::string_view packet) const {
  PacketHeader header;
  MessageReader reader(packet);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::TracePacket::kTimestamp:
        header.timestamp = reader.Int();
        break;
      case field::TracePacket::kTrustedPacketSequenceId:
        header.sequence = reader.Uint();
        break;
      case field::TracePacket::kSequenceFlags:
        header.is_cleared |= (reader.Uint() & kIncrementalStateCleared) != 0;
        break;
      case field::TracePacket::kIncrementalStateCleared:
        header.is_cleared |= reader.Bool();
        break;
      case field::TracePacket::kPreviousPacketDropped:
        header.has_loss = reader.Bool();
        break;
      case field::TracePacket::kTimestampClockId:
        header.clock = static_cast<uint32_t>(reader.Uint());
        break;
      case field::TracePacket::kTracePacketDefaults: {
        MessageReader defaults(reader.Bytes());
        while (defaults.Next()) {
          if (defaults.field() == field::TracePacket::kTimestampClockId)
            header.default_clock = static_cast<uint32_t>(defaults.Uint());
        }
        break;
      }
      default:
        break;
    }
  }
  return header;
}

TraceImporter::Sequence* TraceImporter::SequenceOf(const PacketHeader& header) {
  constexpr size_t kMaxSequences = 1 << 16;  // a hostile file's only
  if (!header.sequence)
    return nullptr;
  const auto found = sequences_.find(*header.sequence);
  if (found != sequences_.end())
    return found->second.get();
  if (sequences_.size() >= kMaxSequences)
    return nullptr;
  std::unique_ptr<Sequence>& sequence = sequences_[*header.sequence];
  sequence = std::make_unique<Sequence>(builder_, &dump_times_, &heap_graphs_);
  return sequence.get();
}

void TraceImporter::UpdateState(const PacketHeader& header, Sequence* sequence) {
  if (sequence == nullptr) {
    if (header.is_cleared)
      builder_->trace().stats.Count(StatId::kIncrementalStateClearedMissingSequenceId);
    return;
  }
  if (header.has_loss)
    sequence->is_valid = false;
  if (header.is_cleared) {
    sequence->profile.BeginGeneration();
    sequence->interned.Clear();
    sequence->is_valid = true;
    sequence->clock = kClockBoottime;
  }
  if (header.default_clock)
    sequence->clock = *header.default_clock;
}

int64_t TraceImporter::TimeOf(const PacketHeader& header, const Sequence* sequence) {
  if (!header.timestamp)
    return latest_ts_;
  const uint32_t clock =
      header.clock.value_or(sequence != nullptr ? sequence->clock : kClockBoottime);
  const std::optional<int64_t> ts =
      clocks_.Convert(clock, builder_->trace().trace_clock, *header.timestamp);
  if (!ts)
    builder_->trace().stats.Count(StatId::kClockSyncFailure);
  latest_ts_ = ts.value_or(*header.timestamp);
  return latest_ts_;
}

void TraceImporter::Import(std::string_view packet) {
  ImportPacket(packet);
  builder_->DecodeUnlessDeferred();
}

void TraceImporter::ImportPacket(std::string_view packet) {
  try {
    const PacketHeader header = ReadHeader(packet);
    Sequence* const sequence = SequenceOf(header);
    UpdateState(header, sequence);
    const int64_t ts = TimeOf(header, sequence);
    // Whatever the packet's data refer to may be in the packet itself.
    MessageReader interned(packet);
    while (interned.Next()) {
      if (interned.field() == field::TracePacket::kInternedData)
        ImportInterned(interned.Bytes(), sequence);
    }
    MessageReader data(packet);
    while (data.Next())
      ImportData(data.field(), data.Bytes(), sequence, ts);
  } catch (const protozero::exception&) {
    builder_->trace().stats.Count(StatId::kPacketParserError);
  }
}

void TraceImporter::ImportInterned(std::string_view message, Sequence* sequence) {
  TraceStats& stats = builder_->trace().stats;
  if (sequence == nullptr) {
    stats.Count(StatId::kInternedDataMissingSequenceId);
  } else if (!sequence->is_valid) {
    stats.Count(StatId::kInternedDataSkippedIncrementalStateInvalid);
  } else {
    try {
      PushStacks(*builder_, sequence->decoder,
                 sequence->interned.AddInternedData(message));
    } catch (const protozero::exception&) {
      stats.Count(StatId::kStackprofileParserError);
    }
  }
}

void TraceImporter::ImportData(uint32_t field,
                               std::string_view message,
                               Sequence* sequence,
                               int64_t ts) {
  switch (field) {
    case field::TracePacket::kProfilePacket: {
      Sequence& target = sequence != nullptr ? *sequence : *no_sequence_;
      PushStacks(*builder_, target.decoder, target.interned.AddProfileTables(message));
      target.profile.Add(message);
      return;
    }
    case field::TracePacket::kHeapGraph:
      return (sequence != nullptr ? *sequence : *no_sequence_)
          .heap_graph.Add(message, ts);
    case field::TracePacket::kArtProcessMetadata:
      return ImportArtMetadata(*builder_, heap_graphs_, message, ts);
    case field::TracePacket::kModuleSymbols:
      return symbols_.Add(message);
    case field::TracePacket::kDeobfuscationMapping:
      return deobfuscator_.Add(ReadDeobfuscationMessage(message));
    case field::TracePacket::kClockSnapshot:
      return ImportClocks(message);
    case field::TracePacket::kProcessTree:
      return ImportProcessTree(*builder_, message);
    case field::TracePacket::kProcessStats:
      return ImportProcessStats(*builder_, message, ts);
    case field::TracePacket::kSmapsPacket:
      return ImportSmaps(*builder_, message, ts);
    case field::TracePacket::kPackagesList:
      return ImportPackagesList(*builder_, message);
    case field::TracePacket::kSystemInfo:
      return ImportSystemInfo(*builder_, message);
    case field::TracePacket::kTraceUuid:
      return ImportTraceUuid(*builder_, message);
    case field::TracePacket::kTraceStats:
      return ImportTraceStats(*builder_, message);
    case field::TracePacket::kUnsampledChildren:
      return ImportUnsampledChildren(*builder_, message);
    case field::TracePacket::kRecordingEnd:
      has_end_ = true;
      return ImportRecordingEnd(*builder_, message);
    case field::TracePacket::kProcessEnd:
      return ImportProcessEnd(*builder_, message);
    case field::TracePacket::kTraceConfig:
      return ImportTraceConfig(*builder_, message);
    case field::TracePacket::kCompressedPackets:
    case field::TracePacket::kZstdCompressedPackets:
      return ImportCompressed(field, message);
    case field::TracePacket::kTimestamp:
    case field::TracePacket::kTrustedPacketSequenceId:
    case field::TracePacket::kInternedData:
    case field::TracePacket::kSequenceFlags:
    case field::TracePacket::kSynchronizationMarker:
    case field::TracePacket::kIncrementalStateCleared:
    case field::TracePacket::kPreviousPacketDropped:
    case field::TracePacket::kTrigger:
    case field::TracePacket::kTimestampClockId:
    case field::TracePacket::kTracePacketDefaults:
    case field::TracePacket::kServiceEvent:
    case field::TracePacket::kTrustedUid:
    case field::TracePacket::kTrustedPid:
    case field::TracePacket::kFirstPacketOnSequence:
    case field::TracePacket::kMachineId:
      return;
    default:
      if (field < kMaxCountedField)
        builder_->trace().stats.Add(StatId::kUnsupportedPacket, field, 1);
  }
}

// The bytes of the file that were read since the last time: what is inflated twice does
// not count as a file of the size between.
uint64_t TraceImporter::NewlyStored(std::string_view compressed) {
  if (source_ == nullptr)
    return depth_ > 1 ? 0 : compressed.size();
  const uint64_t stored = source_->stored_bytes();
  return stored - std::exchange(counted_bytes_, stored);
}

void TraceImporter::ImportCompressed(uint32_t field, std::string_view bytes) {
  constexpr int kMaxDepth = 2;  // Perfetto's are not nested
  if (inflation_.is_spent())
    return builder_->trace().stats.Count(StatId::kUnpackLimit);
  bool is_whole = depth_ < kMaxDepth;
  if (is_whole) {
    ++depth_;
    const std::string packets =
        InflateAll(field == field::TracePacket::kCompressedPackets ? Compression::kZlib
                                                                   : Compression::kZstd,
                   bytes, kMaxCompressedPackets, &is_whole);
    is_whole = inflation_.Take(NewlyStored(bytes), packets.size()) && is_whole;
    std::string_view rest = packets;
    while (const std::optional<std::string_view> packet = TakePacket(&rest))
      Import(*packet);
    is_whole = is_whole && rest.empty();
    --depth_;
  }
  if (!is_whole)
    builder_->trace().stats.Count(StatId::kCompressedPacketError);
}

void TraceImporter::ImportClocks(std::string_view message) {
  constexpr uint32_t kFirstSequenceClock = 64;  // these need their sequence
  constexpr size_t kMaxClocks = 64;
  ClockTable::Snapshot snapshot;
  std::optional<uint32_t> primary;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::ClockSnapshot::kPrimaryTraceClock)
      primary = static_cast<uint32_t>(reader.Uint());
    if (reader.field() != field::ClockSnapshot::kClocks)
      continue;
    MessageReader fields(reader.Bytes());
    uint32_t id = 0;
    uint64_t ts = 0;
    uint64_t unit = 1;
    while (fields.Next()) {
      if (fields.field() == field::ClockSnapshot::Clock::kClockId)
        id = static_cast<uint32_t>(fields.Uint());
      else if (fields.field() == field::ClockSnapshot::Clock::kTimestamp)
        ts = fields.Uint();
      else if (fields.field() == field::ClockSnapshot::Clock::kUnitMultiplierNs)
        unit = fields.Uint();
    }
    if (id < kFirstSequenceClock && snapshot.size() < kMaxClocks)
      snapshot.emplace_back(id, static_cast<int64_t>(ts * unit));
  }
  if (clocks_.empty() && primary)
    builder_->trace().trace_clock = *primary;
  builder_->trace().clocks.Add(snapshot);
  clocks_.Add(std::move(snapshot));
}

void TraceImporter::ConvertTimes() {
  ImportedTrace& trace = builder_->trace();
  const auto convert = [&](int64_t ts) {
    const std::optional<int64_t> converted =
        clocks_.Convert(kClockMonotonicCoarse, trace.trace_clock, ts);
    if (!converted)
      trace.stats.Count(StatId::kClockSyncFailure);
    return converted.value_or(ts);
  };
  for (const DumpTimes& times : dump_times_) {
    ImportedDump& dump = trace.dumps[times.dump];
    dump.ts = convert(times.ts);
    if (times.start_ts)
      dump.start_ts = convert(*times.start_ts);
    if (times.idle_ts)
      dump.idle_ts = convert(*times.idle_ts);
    if (times.idle_until_ts)
      dump.idle_until_ts = convert(*times.idle_until_ts);
    if (times.peak_ts)
      dump.peak_ts = convert(*times.peak_ts);
    trace.stats.Set(StatId::kHeapprofdLastProfileTimestamp,
                    trace.processes[dump.upid].pid, dump.ts);
  }
  dump_times_.clear();
}

void TraceImporter::CountFilesWithoutBuildId() {
  ImportedTrace& trace = builder_->trace();
  int64_t count = 0;
  for (const ImportedMapping& mapping : trace.mappings)
    count += trace.Text(mapping.build_id).empty() &&
                     trace.Text(mapping.name).starts_with("/data/local/tmp/")
                 ? 1
                 : 0;
  trace.stats.Set(StatId::kTmpBuildIdNotFound, 0, count);
}

void TraceImporter::Finish() {
  for (const auto& [id, sequence] : sequences_) {
    sequence->profile.Finish();
    sequence->heap_graph.Finish();
  }
  no_sequence_->profile.Finish();
  no_sequence_->heap_graph.Finish();
  sequences_.clear();
  builder_->DecodeUnlessDeferred();
  ConvertTimes();
  CountFilesWithoutBuildId();
  symbols_.Apply();
  ApplyDeobfuscation(*builder_, deobfuscator_);
}

}  // namespace heapprofd
