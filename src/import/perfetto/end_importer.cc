#include "import/perfetto/end_importer.h"

#include <utility>

#include "trace/recording_end.h"

namespace heapprofd {
namespace {

// In bytes: an entry of a list may be two in the file.
uint64_t MemoryOf(const ProcessEnd& end) {
  uint64_t bytes = sizeof(end) + end.history.size() * sizeof(double);
  for (const UnnamedModule& code : end.unnamed)
    bytes += sizeof(code) + code.starts.size() * sizeof(uint64_t) + code.path.size() +
             code.build_id.size() + code.error.size();
  for (const auto* texts : {&end.unrecorded_heaps, &end.late_files}) {
    for (const std::string& text : *texts)
      bytes += sizeof(std::string) + text.size();
  }
  return bytes;
}

}  // namespace

void ImportTraceConfig(TraceBuilder& builder, std::string_view message) {
  constexpr size_t kMaxConfig = size_t{1} << 20;  // a hostile file's
  std::string& config = builder.trace().trace_config;
  if (config.empty() && message.size() <= kMaxConfig)
    config = message;
}

void ImportRecordingEnd(TraceBuilder& builder, std::string_view message) {
  if (!builder.trace().recording_end)
    builder.trace().recording_end = ReadRecordingEnd(message);
}

// A process without its end is shown as one of another recorder is.
void ImportProcessEnd(TraceBuilder& builder, std::string_view message) {
  constexpr size_t kMaxEnds = size_t{1} << 16;         // a hostile file's
  constexpr uint64_t kMaxBytes = uint64_t{256} << 20;  // of all
  ImportedTrace& trace = builder.trace();
  if (trace.process_ends.size() >= kMaxEnds || trace.process_end_bytes >= kMaxBytes)
    return;
  ProcessEnd end = ReadProcessEnd(message);
  trace.process_end_bytes += MemoryOf(end);
  const uint32_t upid =
      builder.processes().ImageOf(end.pid, static_cast<int64_t>(end.start_ns));
  trace.processes[upid].end = static_cast<uint32_t>(trace.process_ends.size());
  trace.process_ends.push_back(std::move(end));
}

}  // namespace heapprofd
