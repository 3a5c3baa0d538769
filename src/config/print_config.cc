// Writes a configuration as the TraceConfig that means the same.
#include <google/protobuf/text_format.h>

#include <algorithm>

#include "base/utf8.h"
#include "config.pb.h"
#include "config/plain_fields.h"
#include "config/recording_config.h"

namespace heapprofd {
namespace {

namespace proto = perfetto::protos;

// What Perfetto's own tool asks of its service; our recorder needs neither.
constexpr uint32_t kUsualBufferKb = 63488;
constexpr uint32_t kFlushTimeoutMs = 30'000;
constexpr uint32_t kFlushPeriodMs = 604'800'000;

void WriteTargets(const TargetRules& from, proto::HeapprofdConfig* to) {
  for (const std::string& name : from.names)
    to->add_process_cmdline(ToUtf8(name));
  for (const pid_t pid : from.pids)
    to->add_pid(static_cast<uint64_t>(pid));
}

void WriteHeaps(const SessionConfig& from, proto::HeapprofdConfig* to) {
  const HeapSelection& heaps = from.heaps;
  const bool has_intervals = std::any_of(
      heaps.heaps.begin(), heaps.heaps.end(),
      [](const HeapSelection::Heap& heap) { return heap.interval_bytes != 0; });
  for (const HeapSelection::Heap& heap : heaps.heaps) {
    to->add_heaps(heap.name);
    if (has_intervals)
      to->add_heap_sampling_intervals(heap.interval_bytes != 0 ? heap.interval_bytes
                                                               : from.interval_bytes);
  }
  for (const std::string& name : heaps.excluded)
    to->add_exclude_heaps(name);
}

void WriteDumps(const DumpSchedule& from, proto::HeapprofdConfig* to) {
  if (from.interval_ms == 0 && from.phase_ms == 0)
    return;
  to->mutable_continuous_dump_config()->set_dump_phase_ms(from.phase_ms);
  to->mutable_continuous_dump_config()->set_dump_interval_ms(from.interval_ms);
}

void WriteSession(const SessionConfig& from, proto::HeapprofdConfig* to) {
  to->set_sampling_interval_bytes(from.interval_bytes);
  to->set_shmem_size_bytes(from.ring_size_bytes);
  if (from.when_full == WhenFull::kBlock)
    to->set_block_client(true);
  WriteTargets(from.targets, to);
  WriteHeaps(from, to);
  WriteDumps(from.dumps, to);
  WritePlainFields(from, to);
  for (const std::string& installer : from.device.installed_by)
    to->add_target_installed_by(installer);
  for (const std::string& prefix : from.skip_symbol_prefixes)
    to->add_skip_symbol_prefix(prefix);
}

proto::TraceConfig ToProto(const RecordingConfig& from) {
  proto::TraceConfig to;
  HPD_CHECK(to.ParseFromString(from.rest));
  if (to.buffers_size() == 0)
    to.add_buffers()->set_size_kb(kUsualBufferKb);
  for (const SessionConfig& session : from.sessions) {
    proto::DataSourceConfig* source = to.add_data_sources()->mutable_config();
    source->set_name("android.heapprofd");
    WriteSession(session, source->mutable_heapprofd_config());
  }
  to.set_duration_ms(static_cast<uint32_t>(from.duration_ms));
  to.set_write_into_file(true);
  if (!to.has_flush_timeout_ms())
    to.set_flush_timeout_ms(kFlushTimeoutMs);
  if (!to.has_flush_period_ms())
    to.set_flush_period_ms(kFlushPeriodMs);
  if (from.max_file_bytes != 0)
    to.set_max_file_size_bytes(from.max_file_bytes);
  if (!from.unique_name.empty())
    to.set_unique_session_name(from.unique_name);
  if (!from.output_path.empty())
    to.set_output_path(from.output_path);
  return to;
}

}  // namespace

std::string PrintTraceConfig(const RecordingConfig& config) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(ToProto(config), &text);
  return text;
}

std::string SerializeTraceConfig(const RecordingConfig& config) {
  return ToProto(config).SerializeAsString();
}

}  // namespace heapprofd
