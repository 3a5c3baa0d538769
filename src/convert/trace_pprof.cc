#include "convert/trace_pprof.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "convert/frame_names.h"
#include "export/pprof.h"
#include "export/pprof_message.h"
#include "trace/trace_builder.h"

namespace heapprofd {
namespace {

constexpr std::string_view kArtHeap = "com.android.art";

// What a callsite has allocated and holds, in the order of the sample types.
using Values = std::array<int64_t, 4>;

// Figures may be anything: sums wrap instead of overflowing.
int64_t Sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Sums of one heap of one process, as of the last row added.
class HeapSums {
 public:
  void Add(const ImportedTrace& trace, const ImportedDump& dump) {
    const AllocationTable& rows = trace.allocations;
    for (uint32_t i = 0; i < dump.allocation_count; ++i) {
      const uint32_t row = dump.first_allocation + i;
      Values& values = Of(rows.callsite[row]);
      const int64_t count = rows.count[row];
      const int64_t size = rows.size[row];
      // Frees are rows of their own; rows of a peak may fall in either figure.
      if (count >= 0 && size >= 0) {
        values[0] = Sum(values[0], count);
        values[1] = Sum(values[1], size);
      }
      values[2] = Sum(values[2], count);
      values[3] = Sum(values[3], size);
    }
  }

  const Column<uint32_t>& callsites() const { return callsites_; }

  const Values& values(size_t i) const { return values_[i]; }

 private:
  Values& Of(uint32_t callsite) {
    slots_.Prepare([&](uint32_t slot) { return HashOf(callsites_[slot]); });
    uint32_t& slot = slots_.Find(
        HashOf(callsite), [&](uint32_t other) { return callsites_[other] == callsite; });
    if (slot == kNoId) {
      slot = static_cast<uint32_t>(callsites_.size());
      slots_.CountAdded();
      callsites_.push_back(callsite);
      values_.push_back({});
    }
    return values_[slot];
  }

  static uint64_t HashOf(uint32_t callsite) {
    return (callsite * uint64_t{0x9e3779b97f4a7c15}) >> 20;
  }

  RowIndex slots_;
  Column<uint32_t> callsites_;
  Column<Values> values_;
};

// What all profiles of a trace share.
class TraceEncoder {
 public:
  TraceEncoder(const ImportedTrace& trace, bool annotate) : trace_(trace), names_(trace) {
    if (annotate)
      annotations_ = FrameAnnotations(trace);
    features_.resize(trace.mappings.size());
    for (size_t row = 0; row < trace.frames.row_count(); ++row)
      AddFeatures(row);
  }

  std::string Encode(const ImportedDump& dump, const HeapSums& sums, int64_t start_ts);

 private:
  void AddFeatures(size_t row) {
    PprofMessage::Features& features = features_[trace_.frames.mapping[row]];
    const uint32_t set = trace_.frames.symbol_set[row];
    features.functions |= set != kNoId || trace_.frames.name[row] != kEmptyString;
    if (set == kNoId)
      return;
    const SymbolTable& symbols = trace_.symbols;
    const size_t end = symbols.EndOf(set);
    features.inlines |= end - set > 1;
    for (size_t symbol = set; symbol < end; ++symbol) {
      features.files |= symbols.source_file[symbol] != kNoId;
      features.lines |= symbols.line[symbol] != 0;
    }
  }

  void AddProgramMapping(const ImportedProcess& process);
  bool IsLabel(uint32_t frame) const;
  PprofMessage::Label LabelOf(uint32_t frame) const;
  uint64_t LocationOf(uint32_t frame);
  uint64_t MappingOf(uint32_t mapping);
  uint64_t AddressOf(uint32_t frame) const;
  std::vector<PprofMessage::Line> LinesOf(uint32_t frame);
  uint64_t FunctionOf(std::string_view name,
                      std::string_view system_name,
                      StringId file,
                      uint32_t frame);
  PprofMessage::Header HeaderOf(const ImportedDump& dump, int64_t start_ts) const;

  const ImportedTrace& trace_;
  FrameNames names_;
  std::vector<const char*> annotations_;  // empty: not wanted
  std::vector<PprofMessage::Features> features_;

  // Of the current profile.
  std::unique_ptr<PprofMessage> message_;
  std::vector<bool> location_written_;
  std::vector<bool> mapping_written_;
};

std::string_view Basename(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Readers take the first mapping for the program: the one that the command line names, or
// begins to name ("python3" is python3.11).
void TraceEncoder::AddProgramMapping(const ImportedProcess& process) {
  const std::string_view name = Basename(trace_.Text(process.name));
  if (name.empty())
    return;
  uint32_t best = kNoId;
  int best_score = 0;
  for (size_t row = 0; row < trace_.mappings.size(); ++row) {
    const std::string_view path = trace_.Text(trace_.mappings[row].name);
    const int score = path == trace_.Text(process.name)  ? 3
                      : Basename(path) == name           ? 2
                      : Basename(path).starts_with(name) ? 1
                                                         : 0;
    if (score > best_score) {
      best_score = score;
      best = static_cast<uint32_t>(row);
    }
  }
  if (best != kNoId)
    MappingOf(best);
}

uint64_t TraceEncoder::MappingOf(uint32_t mapping) {
  const uint64_t id = uint64_t{mapping} + 1;
  if (mapping_written_[mapping])
    return id;
  mapping_written_[mapping] = true;
  const ImportedMapping& source = trace_.mappings[mapping];
  std::string_view path = trace_.Text(source.name);
  if (path.empty())
    path = source.end == 0 ? "[unknown]" : "[anonymous]";
  else if (path.starts_with("/["))  // "/[vdso]" is how traces spell it
    path.remove_prefix(1);
  message_->AddMapping({.id = id,
                        .start = source.start,
                        .end = source.end,
                        .file_offset = source.exact_offset,
                        .path = path,
                        .build_id = trace_.Text(source.build_id),
                        .features = features_[mapping]});
  return id;
}

uint64_t TraceEncoder::AddressOf(uint32_t frame) const {
  const ImportedMapping& mapping = trace_.mappings[trace_.frames.mapping[frame]];
  return trace_.frames.rel_pc[frame] - mapping.load_bias + mapping.start -
         (mapping.exact_offset - mapping.start_offset);
}

uint64_t TraceEncoder::FunctionOf(std::string_view name,
                                  std::string_view system_name,
                                  StringId file,
                                  uint32_t frame) {
  const char* const annotation = annotations_.empty() ? "" : annotations_[frame];
  if (*annotation == '\0' || name.empty())
    return message_->InternFunction(name, system_name, trace_.Text(file));
  return message_->InternFunction(std::string(name) + " [" + annotation + "]",
                                  system_name, trace_.Text(file));
}

std::vector<PprofMessage::Line> TraceEncoder::LinesOf(uint32_t frame) {
  std::vector<PprofMessage::Line> lines;
  const uint32_t set = trace_.frames.symbol_set[frame];
  if (set != kNoId) {
    const SymbolTable& symbols = trace_.symbols;
    const size_t end = symbols.EndOf(set);
    for (size_t row = set; row < end; ++row) {
      const uint64_t function =
          FunctionOf(names_.Demangled(symbols.name[row]), trace_.Text(symbols.name[row]),
                     symbols.source_file[row], frame);
      lines.push_back({function, symbols.line[row]});
    }
    return lines;
  }
  const StringId name = trace_.frames.name[frame];
  const StringId deobfuscated = trace_.frames.deobfuscated_name[frame];
  if (name == kEmptyString && deobfuscated == kNoId)
    return lines;
  const std::string_view shown =
      deobfuscated != kNoId ? trace_.Text(deobfuscated) : names_.Demangled(name);
  lines.push_back({FunctionOf(shown, trace_.Text(name), kNoId, frame), 0});
  return lines;
}

// Labels are root frames of a mapping of their own (trace/trace_writer.h).
bool TraceEncoder::IsLabel(uint32_t frame) const {
  const std::string_view name =
      trace_.Text(trace_.mappings[trace_.frames.mapping[frame]].name);
  return Basename(name) == kLabelMappingName;
}

// The frame's name is "key=value".
PprofMessage::Label TraceEncoder::LabelOf(uint32_t frame) const {
  const std::string_view text = trace_.Text(trace_.frames.name[frame]);
  const size_t equals = text.find('=');
  return {.key = text.substr(0, equals),
          .text = equals != std::string_view::npos ? text.substr(equals + 1)
                                                   : std::string_view()};
}

uint64_t TraceEncoder::LocationOf(uint32_t frame) {
  const uint64_t id = uint64_t{frame} + 1;
  if (location_written_[frame])
    return id;
  location_written_[frame] = true;
  const uint64_t mapping = MappingOf(trace_.frames.mapping[frame]);
  message_->AddLocation(id, mapping, AddressOf(frame), LinesOf(frame));
  return id;
}

PprofMessage::Header TraceEncoder::HeaderOf(const ImportedDump& dump,
                                            int64_t start_ts) const {
  PprofMessage::Header header;
  const std::optional<int64_t> wall =
      trace_.clocks.Convert(trace_.trace_clock, kClockRealtime, dump.ts);
  header.time_unix_ns = static_cast<uint64_t>(std::max<int64_t>(wall.value_or(0), 0));
  header.duration_ns =
      static_cast<uint64_t>(dump.ts) - static_cast<uint64_t>(std::min(dump.ts, start_ts));
  header.sampling_interval = dump.sampling_interval;
  header.default_sample_type =
      trace_.Text(dump.heap_name) == kArtHeap ? "alloc_space" : "space";
  const StringId cmdline = trace_.processes[dump.upid].cmdline;
  if (cmdline != kNoId)
    header.comments.push_back("command: " + std::string(trace_.Text(cmdline)));
  header.comments.push_back(
      "sampling interval: " + std::to_string(dump.sampling_interval) + " bytes");
  if (dump.is_peak)
    header.comments.push_back(
        "space and objects are those of the moment when most was live");
  if (dump.quality == kNoId) {
    header.comments.push_back(
        "bytes are estimates from samples, counts are those of the samples");
  } else {
    header.comments.push_back("counts and bytes are unbiased estimates from samples");
    header.comments.push_back(QualityComment(trace_.qualities[dump.quality]));
  }
  for (const auto& [is_set, text] :
       {std::pair(dump.buffer_overran, "ended early: the buffer was full"),
        std::pair(dump.buffer_corrupted, "ended early: the buffer was corrupted"),
        std::pair(dump.hit_guardrail, "ended early: the profiler reached its limits"),
        std::pair(!dump.is_finalized, "incomplete: the end of the dump is missing")}) {
    if (is_set)
      header.comments.emplace_back(text);
  }
  return header;
}

std::string TraceEncoder::Encode(const ImportedDump& dump,
                                 const HeapSums& sums,
                                 int64_t start_ts) {
  message_ = std::make_unique<PprofMessage>();
  location_written_.assign(trace_.frames.row_count(), false);
  mapping_written_.assign(trace_.mappings.size(), false);
  const bool has_frees = trace_.Text(dump.heap_name) != kArtHeap;
  message_->AddSampleType("alloc_objects", "count");
  message_->AddSampleType("alloc_space", "bytes");
  if (has_frees) {
    message_->AddSampleType("objects", "count");
    message_->AddSampleType("space", "bytes");
  }
  AddProgramMapping(trace_.processes[dump.upid]);
  std::vector<uint64_t> locations;
  std::vector<PprofMessage::Label> labels;
  for (size_t i = 0; i < sums.callsites().size(); ++i) {
    locations.clear();
    labels.clear();
    for (uint32_t at = sums.callsites()[i]; at != kNoId;
         at = trace_.callsites.parent[at]) {
      const uint32_t frame = trace_.callsites.frame[at];
      if (IsLabel(frame))
        labels.push_back(LabelOf(frame));
      else
        locations.push_back(LocationOf(frame));
    }
    message_->AddSample(locations, std::span(sums.values(i)).first(has_frees ? 4u : 2u),
                        labels);
  }
  return message_->Finish(HeaderOf(dump, start_ts));
}

bool IsSelected(const ImportedTrace& trace,
                const ImportedDump& dump,
                const PprofSelection& selection) {
  return (!selection.pid || trace.processes[dump.upid].pid == *selection.pid) &&
         (selection.timestamps.empty() ||
          std::find(selection.timestamps.begin(), selection.timestamps.end(), dump.ts) !=
              selection.timestamps.end());
}

std::string Join(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::vector<int64_t> Unique(std::vector<int64_t> numbers) {
  constexpr size_t kMaxShown = 10;
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  numbers.resize(std::min(numbers.size(), kMaxShown));
  return numbers;
}

}  // namespace

Status ConvertToPprof(const ImportedTrace& trace,
                      const PprofSelection& selection,
                      const DumpProfileSink& sink) {
  struct Heap {
    HeapSums sums;
    std::optional<int64_t> start_ts;
    size_t dumps_left = 0;  // its memory is given back behind the last one
  };

  using HeapKey = std::pair<uint32_t, StringId>;
  std::map<HeapKey, Heap> heaps;
  for (const ImportedDump& dump : trace.dumps)
    ++heaps[{dump.upid, dump.heap_name}].dumps_left;
  TraceEncoder encoder(trace, selection.annotate);
  for (const ImportedDump& dump : trace.dumps) {
    const HeapKey key = {dump.upid, dump.heap_name};
    Heap& heap = heaps[key];
    if (!heap.start_ts)
      heap.start_ts = dump.start_ts.value_or(dump.ts);
    heap.sums.Add(trace, dump);
    if (IsSelected(trace, dump, selection) && !heap.sums.callsites().empty())
      HPD_TRY(sink({.pid = trace.processes[dump.upid].pid,
                    .heap_name = std::string(trace.Text(dump.heap_name)),
                    .bytes = encoder.Encode(dump, heap.sums, *heap.start_ts)}));
    if (--heap.dumps_left == 0)
      heaps.erase(key);
  }
  return {};
}

std::string ReasonForNoProfile(const ImportedTrace& trace,
                               const PprofSelection& selection) {
  if (trace.dumps.empty())
    return "the trace has no heap profile; was it recorded with the android.heapprofd "
           "data source?";
  std::vector<int64_t> pids;
  std::vector<int64_t> times;
  for (const ImportedDump& dump : trace.dumps) {
    pids.push_back(trace.processes[dump.upid].pid);
    if (!selection.pid || pids.back() == *selection.pid)
      times.push_back(dump.ts);
  }
  if (times.empty())
    return "the trace has no dump of --pid " + std::to_string(*selection.pid) +
           "; it has dumps of " + Join(Unique(pids));
  if (!selection.timestamps.empty())
    return "the trace has no dump with samples at --timestamps " +
           Join(selection.timestamps) + "; it has dumps at " + Join(Unique(times));
  if (trace.stats.Sum(StatId::kHeapprofdRejectedConcurrent) > 0)
    return "another session was already profiling the process; end that one first";
  return "no dump of the trace has a sample: the program allocated nothing, or all "
         "allocations together were smaller than the sampling interval; record with a "
         "smaller --interval";
}

}  // namespace heapprofd
