#include "export/trace_pprof.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "export/frame_names.h"
#include "export/heap_sums.h"
#include "export/pprof.h"
#include "export/pprof_message.h"
#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

constexpr std::string_view kArtHeap = "com.android.art";

// Heap names come from the trace.
std::string AsFileName(std::string name) {
  constexpr size_t kMaxLength = 100;
  name.resize(std::min(name.size(), kMaxLength));
  for (char& c : name) {
    if (c == '/' || static_cast<unsigned char>(c) <= ' ' || c == 127)
      c = '_';
  }
  return name;
}

// What all profiles of a trace share.
class TraceEncoder {
 public:
  TraceEncoder(const ImportedTrace& trace, bool annotate) : trace_(trace), names_(trace) {
    if (annotate)
      annotations_ = FrameAnnotations(trace);
    features_.resize(trace.mappings.size());
    for (const ImportedMapping& mapping : trace.mappings)
      is_label_mapping_.push_back(FileName(trace.Text(mapping.name)) ==
                                  kLabelMappingName);
    for (size_t row = 0; row < trace.frames.row_count(); ++row)
      AddFeatures(row);
  }

  // `sums`: may get rows for callsites that held nothing.
  void Encode(uint32_t dump, HeapSums& sums, int64_t start_ts, const PprofOutput& output);

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

  enum class FrameState : uint8_t { kNew, kWritten, kLabel };

  // What a function is told from others by.
  struct FunctionKey {
    StringId deobfuscated_name;  // kNoId: the demangled name is shown
    StringId name;
    StringId system_name;  // the linker's
    StringId file;
    const char* annotation;

    bool operator==(const FunctionKey&) const = default;
  };

  struct Function {
    FunctionKey key;
    uint64_t id;  // in the message
  };

  static uint64_t HashOf(const FunctionKey& key) {
    const uint64_t names = (uint64_t{key.name} << 32) | key.deobfuscated_name;
    const uint64_t places = (uint64_t{key.system_name} << 32) | key.file;
    return Mix(Mix(names) ^ Mix(places) ^ static_cast<unsigned char>(*key.annotation));
  }

  void AddProgramMapping(const ImportedProcess& process);
  PprofMessage::Label LabelOf(uint32_t frame) const;
  FrameState Prepare(uint32_t frame);
  void AddFrame(uint32_t frame);
  void AddSample(uint32_t callsite, std::span<const int64_t> values);
  void AddSamplesWithMaximum(uint32_t dump, HeapSums& sums);

  static uint64_t LocationId(uint32_t frame) { return uint64_t{frame} + 1; }

  uint64_t MappingOf(uint32_t mapping);
  uint64_t AddressOf(uint32_t frame) const;
  std::vector<PprofMessage::Line> LinesOf(uint32_t frame);
  uint64_t FunctionOf(const FunctionKey& key);
  uint64_t AddFunction(const FunctionKey& key);

  const char* AnnotationOf(uint32_t frame) const {
    return annotations_.empty() ? "" : annotations_[frame];
  }

  PprofMessage::Header HeaderOf(const ImportedDump& dump,
                                int64_t start_ts,
                                bool has_maximum) const;

  const ImportedTrace& trace_;
  FrameNames names_;
  std::vector<const char*> annotations_;  // empty: not wanted
  std::vector<PprofMessage::Features> features_;
  std::vector<bool> is_label_mapping_;

  // Of the current profile.
  std::unique_ptr<PprofMessage> message_;
  std::vector<FrameState> frame_states_;
  Column<Function> functions_;
  RowIndex function_index_;
  std::vector<bool> mapping_written_;
  std::vector<uint64_t> locations_;  // of the current sample
  std::vector<PprofMessage::Label> labels_;
};

// Readers take the first mapping for the program: the one that the recorder or the
// command line names, or the latter begins to name ("python3" is python3.11).
void TraceEncoder::AddProgramMapping(const ImportedProcess& process) {
  const std::string_view executable =
      process.end != kNoId ? std::string_view(trace_.process_ends[process.end].executable)
                           : std::string_view();
  const std::string_view name = FileName(trace_.Text(process.name));
  if (name.empty() && executable.empty())
    return;
  uint32_t best = kNoId;
  int best_score = 0;
  for (size_t row = 0; row < trace_.mappings.size(); ++row) {
    const std::string_view path = trace_.Text(trace_.mappings[row].name);
    const int score = path.empty()                        ? 0
                      : path == executable                ? 4
                      : name.empty()                      ? 0
                      : path == trace_.Text(process.name) ? 3
                      : FileName(path) == name            ? 2
                      : FileName(path).starts_with(name)  ? 1
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

uint64_t TraceEncoder::FunctionOf(const FunctionKey& key) {
  function_index_.Prepare([this](uint32_t row) { return HashOf(functions_[row].key); });
  uint32_t& row = function_index_.Find(
      HashOf(key), [&](uint32_t other) { return functions_[other].key == key; });
  if (row == RowIndex::kNone) {
    row = static_cast<uint32_t>(functions_.size());
    function_index_.CountAdded();
    functions_.push_back({key, AddFunction(key)});
  }
  return functions_[row].id;
}

uint64_t TraceEncoder::AddFunction(const FunctionKey& key) {
  const std::string_view name = key.deobfuscated_name != kNoId
                                    ? trace_.Text(key.deobfuscated_name)
                                    : names_.Demangled(key.name);
  const std::string_view system_name = trace_.Text(key.system_name);
  const std::string_view file = trace_.Text(key.file);
  if (*key.annotation == '\0' || name.empty())
    return message_->InternFunction(name, system_name, file);
  return message_->InternFunction(std::string(name) + " [" + key.annotation + "]",
                                  system_name, file);
}

std::vector<PprofMessage::Line> TraceEncoder::LinesOf(uint32_t frame) {
  std::vector<PprofMessage::Line> lines;
  const char* const annotation = AnnotationOf(frame);
  const uint32_t set = trace_.frames.symbol_set[frame];
  if (set != kNoId) {
    const SymbolTable& symbols = trace_.symbols;
    const size_t end = symbols.EndOf(set);
    const StringId linkers = trace_.frames.name[frame];  // of the outermost function
    for (size_t row = set; row < end; ++row)
      lines.push_back(
          {FunctionOf({.deobfuscated_name = kNoId,
                       .name = symbols.name[row],
                       .system_name = row + 1 == end && linkers != kEmptyString
                                          ? linkers
                                          : symbols.name[row],
                       .file = symbols.source_file[row],
                       .annotation = annotation}),
           symbols.line[row]});
    return lines;
  }
  const StringId name = trace_.frames.name[frame];
  const StringId deobfuscated = trace_.frames.deobfuscated_name[frame];
  if (name == kEmptyString && deobfuscated == kNoId)
    return lines;
  lines.push_back({FunctionOf({.deobfuscated_name = deobfuscated,
                               .name = name,
                               .system_name = name,
                               .file = kNoId,
                               .annotation = annotation}),
                   0});
  return lines;
}

// The frame's name is "key=value".
PprofMessage::Label TraceEncoder::LabelOf(uint32_t frame) const {
  const std::string_view text = trace_.Text(trace_.frames.name[frame]);
  const size_t equals = text.find('=');
  return {.key = text.substr(0, equals),
          .text = equals != std::string_view::npos ? text.substr(equals + 1)
                                                   : std::string_view()};
}

// Writes the frame's location. Labels are root frames of a mapping of their own
// (trace/trace_writer.h) and have none.
TraceEncoder::FrameState TraceEncoder::Prepare(uint32_t frame) {
  FrameState& state = frame_states_[frame];
  const uint32_t mapping = trace_.frames.mapping[frame];
  if (is_label_mapping_[mapping]) {
    state = FrameState::kLabel;
  } else {
    state = FrameState::kWritten;
    message_->AddLocation(LocationId(frame), MappingOf(mapping), AddressOf(frame),
                          LinesOf(frame));
  }
  return state;
}

PprofMessage::Header TraceEncoder::HeaderOf(const ImportedDump& dump,
                                            int64_t start_ts,
                                            bool has_maximum) const {
  PprofMessage::Header header = HeaderAt(trace_, dump.ts, dump.upid);
  header.duration_ns =
      static_cast<uint64_t>(dump.ts) - static_cast<uint64_t>(std::min(dump.ts, start_ts));
  header.sampling_interval = dump.sampling_interval;
  header.default_sample_type = trace_.Text(dump.heap_name) == kArtHeap ? "alloc_space"
                               : has_maximum                           ? "max_space"
                                                                       : "space";
  header.comments.push_back(
      "sampling interval: " + std::to_string(dump.sampling_interval) + " bytes");
  header.comments.emplace_back(
      dump.quality == kNoId
          ? "bytes are estimates from samples, counts are those of the samples"
          : "counts and bytes are unbiased estimates from samples");
  if (dump.label != kNoId)
    header.comments.push_back("dump: " + std::string(trace_.Text(dump.label)));
  if (dump.is_peak && !has_maximum)
    header.comments.push_back(
        "space and objects are those of the moment when most was live");
  if (dump.is_peak && dump.peak_low && dump.peak_high)
    header.comments.push_back(
        PeakComment({.bytes = static_cast<double>(dump.peak_bytes),
                     .low = static_cast<double>(*dump.peak_low),
                     .high = static_cast<double>(*dump.peak_high)}));
  if (dump.quality != kNoId)
    header.comments.push_back(QualityComment(trace_.qualities[dump.quality]));
  const bool is_ours = dump.quality != kNoId;  // which tells what was lost, and goes on
  for (const auto& [is_set, text] :
       {std::pair(dump.buffer_overran && !is_ours, "ended early: the buffer was full"),
        std::pair(dump.buffer_corrupted && !is_ours,
                  "ended early: the buffer was corrupted"),
        std::pair(dump.hit_guardrail, "ended early: the profiler reached its limits"),
        std::pair(!dump.is_finalized, "incomplete: the end of the dump is missing")}) {
    if (is_set)
      header.comments.emplace_back(text);
  }
  return header;
}

void TraceEncoder::AddFrame(uint32_t frame) {
  FrameState state = frame_states_[frame];
  if (state == FrameState::kNew)
    state = Prepare(frame);
  if (state == FrameState::kLabel)
    labels_.push_back(LabelOf(frame));
  else
    locations_.push_back(LocationId(frame));
}

void TraceEncoder::AddSample(uint32_t callsite, std::span<const int64_t> values) {
  locations_.clear();
  labels_.clear();
  if (trace_.stacks.row_count() > 0) {
    const std::span<const uint32_t> stack = trace_.stacks.FramesOf(callsite);
    for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame)
      AddFrame(*frame);
  } else {
    for (uint32_t at = callsite; at != kNoId; at = trace_.callsites.parent[at])
      AddFrame(trace_.callsites.frame[at]);
  }
  message_->AddSample(locations_, values, labels_);
}

// Rows of the dump are of the maximum; what stands beside them is of the end.
void TraceEncoder::AddSamplesWithMaximum(uint32_t dump, HeapSums& sums) {
  HeapSums end;
  end.AddEnd(trace_, dump);
  for (size_t i = 0; i < end.callsites().size(); ++i) {
    const uint32_t callsite = end.callsites()[i];
    const HeapValues& values = end.values(i);
    const HeapValues& maximum = sums.Of(callsite);
    AddSample(callsite, std::array{values[0], values[1], values[2], values[3], maximum[2],
                                   maximum[3]});
  }
}

void TraceEncoder::Encode(uint32_t dump_id,
                          HeapSums& sums,
                          int64_t start_ts,
                          const PprofOutput& output) {
  const ImportedDump& dump = trace_.dumps[dump_id];
  message_ = std::make_unique<PprofMessage>(output);
  frame_states_.assign(trace_.frames.row_count(), FrameState::kNew);
  mapping_written_.assign(trace_.mappings.size(), false);
  functions_.clear();
  function_index_ = RowIndex();
  const bool has_frees = trace_.Text(dump.heap_name) != kArtHeap;
  const auto [first_end, last_end] = trace_.cumulative.RowsOf(dump_id);
  const bool has_maximum = dump.is_peak && first_end != last_end;
  message_->AddSampleType("alloc_objects", "count");
  message_->AddSampleType("alloc_space", "bytes");
  if (has_frees || has_maximum) {
    message_->AddSampleType("objects", "count");
    message_->AddSampleType("space", "bytes");
  }
  if (has_maximum) {
    message_->AddSampleType("max_objects", "count");
    message_->AddSampleType("max_space", "bytes");
  }
  AddProgramMapping(trace_.processes[dump.upid]);
  if (has_maximum)
    AddSamplesWithMaximum(dump_id, sums);
  for (size_t i = 0; !has_maximum && i < sums.callsites().size(); ++i)
    AddSample(sums.callsites()[i], std::span(sums.values(i)).first(has_frees ? 4u : 2u));
  message_->Finish(HeaderOf(dump, start_ts, has_maximum));
}

}  // namespace

std::string PprofFileName(const DumpProfile& dump, size_t number) {
  const std::string numbers = std::to_string(number) + "." + std::to_string(dump.pid);
  return dump.dump == kNoId ? "java_heap_dump." + numbers
                            : "heap_dump." + numbers + "." + AsFileName(dump.heap_name);
}

std::vector<bool> HaveSamples(const ImportedTrace& trace) {
  std::map<std::pair<uint32_t, StringId>, bool> heaps;
  std::vector<bool> have_samples;
  for (uint32_t id = 0; id < trace.dumps.size(); ++id) {
    const ImportedDump& dump = trace.dumps[id];
    const auto [first_end, last_end] = trace.cumulative.RowsOf(id);
    bool& has_samples = heaps[{dump.upid, dump.heap_name}];
    has_samples |= dump.allocation_count > 0 || first_end != last_end;
    have_samples.push_back(has_samples);
  }
  return have_samples;
}

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
  const std::vector<bool> have_samples = HaveSamples(trace);
  TraceEncoder encoder(trace, selection.annotate);
  for (uint32_t id = 0; id < trace.dumps.size(); ++id) {
    const ImportedDump& dump = trace.dumps[id];
    const HeapKey key = {dump.upid, dump.heap_name};
    Heap& heap = heaps[key];
    if (!heap.start_ts)
      heap.start_ts = dump.start_ts.value_or(dump.ts);
    heap.sums.Add(trace, dump);
    if (have_samples[id] && IsSelected(trace, selection, dump.upid, dump.ts))
      HPD_TRY(sink({.pid = trace.processes[dump.upid].pid,
                    .heap_name = std::string(trace.Text(dump.heap_name)),
                    .encode =
                        [&](const PprofOutput& output) {
                          encoder.Encode(id, heap.sums, *heap.start_ts, output);
                        },
                    .note = {},
                    .dump = id}));
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
  DumpTimesByPid dumps;
  for (const ImportedDump& dump : trace.dumps)
    dumps.emplace_back(trace.processes[dump.upid].pid, dump.ts);
  if (std::string reason = ReasonFromSelection(dumps, selection); !reason.empty())
    return reason;
  if (trace.stats.Sum(StatId::kHeapprofdRejectedConcurrent) > 0)
    return "another session was already profiling the process; end that one first";
  return "no dump of the trace has a sample: the program allocated nothing, or all "
         "allocations together were smaller than the sampling interval; record with a "
         "smaller --interval";
}

}  // namespace heapprofd
