#include "config/java_hprof_config.h"

#include <google/protobuf/text_format.h>

#include "config.pb.h"

namespace heapprofd {
namespace proto = perfetto::protos;

namespace {

// Those of Perfetto's own tool.
constexpr uint32_t kBufferKb = 100'024;
constexpr uint32_t kFixedTimeMs = 20'000;
constexpr uint32_t kShortestMs = 1'000;
constexpr uint32_t kMostForDumpMs = 100'000;  // behind the shortest time

void WriteJavaHprof(const JavaHprofOptions& from, proto::JavaHprofConfig* to) {
  for (const pid_t pid : from.pids)
    to->add_pid(static_cast<uint64_t>(pid));
  for (const std::string& name : from.names)
    to->add_process_cmdline(name);
  if (from.with_smaps)
    to->set_dump_smaps(true);
  if (from.dump_interval_ms == 0)
    return;
  to->mutable_continuous_dump_config()->set_dump_phase_ms(0);
  to->mutable_continuous_dump_config()->set_dump_interval_ms(from.dump_interval_ms);
}

}  // namespace

std::string PrintJavaHprofConfig(const JavaHprofOptions& options) {
  proto::TraceConfig config;
  proto::TraceConfig::BufferConfig* const buffer = config.add_buffers();
  buffer->set_size_kb(kBufferKb);
  buffer->set_fill_policy(proto::TraceConfig::BufferConfig::RING_BUFFER);
  proto::DataSourceConfig* const source = config.add_data_sources()->mutable_config();
  source->set_name("android.java_hprof");
  WriteJavaHprof(options, source->mutable_java_hprof_config());
  if (options.with_packages)
    config.add_data_sources()->mutable_config()->set_name("android.packages_list");
  config.set_duration_ms(options.stops_when_done ? kShortestMs : kFixedTimeMs);
  config.set_data_source_stop_timeout_ms(options.stops_when_done ? kMostForDumpMs : 0);
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  return text;
}

}  // namespace heapprofd
