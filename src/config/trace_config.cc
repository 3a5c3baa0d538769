// Reads TraceConfig with libprotobuf, in both of its forms.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <iterator>

#include "config.pb.h"
#include "config/plain_fields.h"
#include "config/recording_config.h"
#include "sources/data_source.h"

namespace heapprofd {
namespace {

namespace proto = perfetto::protos;

constexpr char kHeapprofdSource[] = "android.heapprofd";
constexpr size_t kMaxConfigBytes = size_t{1} << 20;
constexpr uint64_t kMaxPerfettoRing = uint64_t{500} << 20;  // larger ones are cut to this

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty())
      text_ = "line " + std::to_string(line + 1) + ", column " +
              std::to_string(column + 1) + ": " + message;
  }

  void AddWarning(int, int, const std::string&) override {}

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

bool LooksBinary(std::string_view bytes) {
  return std::any_of(bytes.begin(), bytes.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r';
  });
}

Result<proto::TraceConfig> ParseText(std::string_view bytes, bool is_lossy) {
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(50);
  parser.AllowUnknownField(is_lossy);
  proto::TraceConfig config;
  if (!parser.ParseFromString(std::string(bytes), &config))
    return Invalid("cannot read the trace configuration as text: " + error.text() +
                   "; heap_profile --print-config shows a right one, and --txt-lossy "
                   "skips fields that are unknown here");
  return config;
}

Result<proto::TraceConfig> ParseBytes(std::string_view bytes, ConfigForm form) {
  if (bytes.size() > kMaxConfigBytes)
    return Invalid("cannot read the trace configuration: it is larger than 1 MiB");
  const bool is_binary =
      form == ConfigForm::kBinary || (form == ConfigForm::kDetect && LooksBinary(bytes));
  if (!is_binary)
    return ParseText(bytes, form == ConfigForm::kTextLossy);
  proto::TraceConfig config;
  if (!config.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Invalid(
        "cannot read the trace configuration: it is neither a binary TraceConfig nor "
        "text; use --txt when it is text");
  return config;
}

Status ReadHeaps(const proto::HeapprofdConfig& from, HeapSelection* to) {
  const int intervals = from.heap_sampling_intervals_size();
  if (intervals != 0 && intervals != from.heaps_size())
    return Invalid("cannot use heap_sampling_intervals: there are " +
                   std::to_string(intervals) + " for " +
                   std::to_string(from.heaps_size()) +
                   " heaps; give one for each or none");
  for (int i = 0; i < from.heaps_size(); ++i) {
    HeapSelection::Heap heap{.name = from.heaps(i)};
    if (intervals != 0) {
      heap.interval_bytes = from.heap_sampling_intervals(i);
      if (heap.interval_bytes == 0)
        return Invalid("cannot use heap_sampling_intervals: the one of heap " +
                       heap.name + " is 0; it must be at least 1");
    }
    to->heaps.push_back(std::move(heap));
  }
  to->excluded.assign(from.exclude_heaps().begin(), from.exclude_heaps().end());
  return {};
}

Status ReadTargets(const proto::HeapprofdConfig& from, TargetRules* to) {
  to->names.assign(from.process_cmdline().begin(), from.process_cmdline().end());
  for (const uint64_t pid : from.pid()) {
    if (pid > INT_MAX)
      return Invalid("cannot use pid " + std::to_string(pid) + ": it is no process id");
    to->pids.push_back(static_cast<pid_t>(pid));
  }
  return {};
}

Result<SessionConfig> ReadSession(const proto::HeapprofdConfig& from) {
  SessionConfig to;
  ReadPlainFields(from, &to);
  HPD_TRY(ReadHeaps(from, &to.heaps));
  HPD_TRY(ReadTargets(from, &to.targets));
  to.interval_bytes = from.sampling_interval_bytes();
  if (from.shmem_size_bytes() != 0)
    to.ring_size_bytes = std::min<uint64_t>(from.shmem_size_bytes(), kMaxPerfettoRing);
  to.when_full = from.block_client() ? WhenFull::kBlock : WhenFull::kDrop;
  to.dumps.phase_ms = from.continuous_dump_config().dump_phase_ms();
  to.dumps.interval_ms = from.continuous_dump_config().dump_interval_ms();
  to.skip_symbol_prefixes.assign(from.skip_symbol_prefix().begin(),
                                 from.skip_symbol_prefix().end());
  to.device.installed_by.assign(from.target_installed_by().begin(),
                                from.target_installed_by().end());
  HPD_TRY(CheckSessionConfig(to));
  return to;
}

void AddNotes(const proto::HeapprofdConfig& from, std::vector<std::string>* notes) {
  if (from.target_installed_by_size() != 0)
    notes->push_back("target_installed_by has no meaning on Linux and is not used");
  if (from.disable_fork_teardown() || from.disable_vfork_detection())
    notes->push_back(
        "disable_fork_teardown and disable_vfork_detection change nothing here: a child "
        "never ends its parent's profile");
}

bool IsOurs(const proto::TraceConfig::DataSource& source) {
  return source.config().name() == kHeapprofdSource;
}

// Names the fields of the configuration itself that are set and change nothing here.
// Those of the buffers, and of when they are written and flushed, are left out: the trace
// goes to its file as it grows.
void NoteWithoutEffect(const proto::TraceConfig& from, std::vector<std::string>* notes) {
  constexpr std::array<std::string_view, 10> kUnderstood = {"buffers",
                                                            "data_sources",
                                                            "duration_ms",
                                                            "write_into_file",
                                                            "output_path",
                                                            "file_write_period_ms",
                                                            "flush_period_ms",
                                                            "flush_timeout_ms",
                                                            "max_file_size_bytes",
                                                            "unique_session_name"};
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  proto::TraceConfig::GetReflection()->ListFields(from, &fields);
  std::string names;
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (std::ranges::find(kUnderstood, field->name()) == kUnderstood.end())
      names.append(names.empty() ? "" : ", ").append(field->name());
  }
  if (!names.empty())
    notes->push_back("of the trace configuration has no effect here: " + names);
}

// What is not in a RecordingConfig otherwise; nothing of it is lost on the way to the
// trace.
std::string TakeRest(proto::TraceConfig* from) {
  auto& sources = *from->mutable_data_sources();
  sources.erase(std::remove_if(sources.begin(), sources.end(), IsOurs), sources.end());
  from->clear_duration_ms();
  from->clear_max_file_size_bytes();
  from->clear_unique_session_name();
  from->clear_output_path();
  return from->SerializeAsString();
}

}  // namespace

Result<RecordingConfig> ParseTraceConfig(std::string_view bytes, ConfigForm form) {
  HPD_TRY_ASSIGN(proto::TraceConfig from, ParseBytes(bytes, form));
  RecordingConfig config;
  for (const proto::TraceConfig::DataSource& source : from.data_sources()) {
    if (!IsOurs(source))
      continue;
    const proto::HeapprofdConfig& heapprofd = source.config().heapprofd_config();
    HPD_TRY_ASSIGN(SessionConfig session, ReadSession(heapprofd));
    config.sessions.push_back(std::move(session));
    AddNotes(heapprofd, &config.notes);
  }
  NoteWithoutEffect(from, &config.notes);
  config.duration_ms = from.duration_ms();
  config.max_file_bytes = from.max_file_size_bytes();
  config.unique_name = from.unique_session_name();
  config.output_path = from.output_path();
  HPD_TRY(CheckRecordingConfig(config));
  config.rest = TakeRest(&from);
  std::ranges::move(MakeDataSources(config.rest).notes, std::back_inserter(config.notes));
  return config;
}

}  // namespace heapprofd
