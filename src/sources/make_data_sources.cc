// Which of Perfetto's data sources exist here, and what of their configurations is
// obeyed.
#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "config.pb.h"
#include "sources/data_source.h"
#include "sources/ftrace.h"
#include "sources/process_stats.h"
#include "sources/system_stats.h"

namespace heapprofd {
namespace {

namespace proto = perfetto::protos;

constexpr size_t kMaxSources = 16;
constexpr size_t kMaxName = 80;

// Names the fields of a source's configuration that are set and have no effect here.
void NoteIgnored(std::string_view source,
                 const google::protobuf::Message& config,
                 std::span<const std::string_view> obeyed,
                 std::vector<std::string>* notes) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  config.GetReflection()->ListFields(config, &fields);
  std::string ignored;
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (std::ranges::find(obeyed, field->name()) == obeyed.end())
      ignored.append(ignored.empty() ? "" : ", ").append(field->name());
  }
  if (!ignored.empty())
    notes->push_back("of data source \"" + std::string(source) +
                     "\" is not recorded: " + ignored);
}

// Names the periods that are shorter than what is possible.
void NoteTooShort(const google::protobuf::Message& config,
                  uint32_t min_ms,
                  std::vector<std::string>* notes) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  config.GetReflection()->ListFields(config, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_UINT32 ||
        field->is_repeated() || !field->name().ends_with("_ms"))
      continue;
    const uint32_t period = config.GetReflection()->GetUInt32(config, field);
    if (period != 0 && period < min_ms)
      notes->push_back(field->name() + ": " + std::to_string(period) + " is too short; " +
                       std::to_string(min_ms) + " is used");
  }
}

std::unique_ptr<DataSource> ProcessStatsOf(const proto::ProcessStatsConfig& config) {
  return MakeProcessStats({.scan_at_start = config.scan_all_processes_on_start(),
                           .thread_names = config.record_thread_names(),
                           .age = config.record_process_age(),
                           .runtime = config.record_process_runtime(),
                           .poll_ms = config.proc_stats_poll_ms()});
}

template <typename Values>
std::set<int> SetOf(const Values& values) {
  return {values.begin(), values.end()};
}

std::unique_ptr<DataSource> SystemStatsOf(const proto::SysStatsConfig& config) {
  return MakeSystemStats({.meminfo_ms = config.meminfo_period_ms(),
                          .vmstat_ms = config.vmstat_period_ms(),
                          .stat_ms = config.stat_period_ms(),
                          .cpu_frequency_ms = config.cpufreq_period_ms(),
                          .buddyinfo_ms = config.buddyinfo_period_ms(),
                          .disks_ms = config.diskstat_period_ms(),
                          .pressure_ms = config.psi_period_ms(),
                          .meminfo_counters = SetOf(config.meminfo_counters()),
                          .vmstat_counters = SetOf(config.vmstat_counters()),
                          .stat_counters = SetOf(config.stat_counters())});
}

// Several of them are one: each would have a buffer of its own, and record again what the
// others have.
void AddTo(const proto::FtraceConfig& config, FtraceOptions* to) {
  std::set<std::string> known(to->events.begin(), to->events.end());
  for (const std::string& event : config.ftrace_events()) {
    if (known.insert(event).second)
      to->events.push_back(event);
  }
  to->buffer_kib = std::max(to->buffer_kib, config.buffer_size_kb());
  const uint32_t drain_ms = config.drain_period_ms();
  if (drain_ms != 0 && (to->drain_ms == 0 || drain_ms < to->drain_ms))
    to->drain_ms = drain_ms;
}

void Add(const proto::DataSourceConfig& config,
         std::optional<FtraceOptions>* ftrace,
         DataSources* to) {
  if (config.name() == kProcessStatsSource) {
    NoteIgnored(config.name(), config.process_stats_config(), kProcessStatsFields,
                &to->notes);
    NoteTooShort(config.process_stats_config(), kMinProcessStatsMs, &to->notes);
    to->sources.push_back(ProcessStatsOf(config.process_stats_config()));
  } else if (config.name() == kSystemStatsSource) {
    NoteIgnored(config.name(), config.sys_stats_config(), kSystemStatsFields, &to->notes);
    NoteTooShort(config.sys_stats_config(), kMinSystemStatsMs, &to->notes);
    to->sources.push_back(SystemStatsOf(config.sys_stats_config()));
  } else if (config.name() == kFtraceSource) {
    NoteIgnored(config.name(), config.ftrace_config(), kFtraceFields, &to->notes);
    NoteTooShort(config.ftrace_config(), kMinFtraceDrainMs, &to->notes);
    if (!*ftrace)
      ftrace->emplace();
    AddTo(config.ftrace_config(), &**ftrace);
  } else {
    to->notes.push_back("data source \"" + config.name().substr(0, kMaxName) +
                        "\" is not recorded: there is none of this name on Linux here");
  }
}

}  // namespace

DataSources MakeDataSources(const std::string& trace_config) {
  proto::TraceConfig config;
  DataSources made;
  std::optional<FtraceOptions> ftrace;
  if (!config.ParseFromString(trace_config))
    return made;
  for (const proto::TraceConfig::DataSource& source : config.data_sources()) {
    if (made.sources.size() == kMaxSources) {
      made.notes.push_back("data sources beyond the first " +
                           std::to_string(kMaxSources) + " are not recorded");
      break;
    }
    Add(source.config(), &ftrace, &made);
  }
  if (ftrace)
    made.sources.push_back(MakeFtrace(std::move(*ftrace)));
  return made;
}

}  // namespace heapprofd
