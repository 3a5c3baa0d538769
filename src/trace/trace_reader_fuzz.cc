// Hostile trace files: whatever is in them, the tables hold together.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trace/decode_queue.h"
#include "trace/trace_reader.h"

namespace heapprofd {
namespace {

void CheckTables(const ImportedTrace& trace) {
  for (size_t row = 0; row < trace.callsites.row_count(); ++row) {
    const uint32_t parent = trace.callsites.parent[row];
    HPD_CHECK(parent == kNoId || parent < row);
    HPD_CHECK(trace.callsites.frame[row] < trace.frames.row_count());
  }
  for (size_t row = 0; row < trace.frames.row_count(); ++row) {
    HPD_CHECK(trace.frames.mapping[row] < trace.mappings.size());
    const uint32_t set = trace.frames.symbol_set[row];
    HPD_CHECK(set == kNoId || trace.symbols.set[set] == set);
  }
  size_t rows = 0;
  for (const ImportedDump& dump : trace.dumps) {
    HPD_CHECK(dump.upid < trace.processes.size());
    HPD_CHECK(dump.first_allocation == rows);
    rows += dump.allocation_count;
  }
  HPD_CHECK(rows == trace.allocations.row_count());
  for (size_t row = 0; row < rows; ++row)
    HPD_CHECK(trace.allocations.callsite[row] < trace.callsites.row_count());
}

// Decoding later gives the same.
void CheckDeferred(std::string_view bytes, const ImportedTrace& want) {
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  builder.DeferDecoding();
  MemorySource source(bytes);
  static_cast<void>(ReadTrace(source, "fuzz", builder));
  builder.decoding().Run();
  CheckTables(trace);
  HPD_CHECK(trace.callsites.row_count() == want.callsites.row_count());
  HPD_CHECK(trace.allocations.row_count() == want.allocations.row_count());
  HPD_CHECK(trace.stats.values() == want.stats.values());
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heapprofd::ImportedTrace trace;
  heapprofd::TraceBuilder builder(&trace);
  heapprofd::MemorySource source(
      std::string_view(reinterpret_cast<const char*>(data), size));
  static_cast<void>(heapprofd::ReadTrace(source, "fuzz", builder));
  static_cast<void>(heapprofd::TraceWarnings(trace));
  heapprofd::CheckTables(trace);
  heapprofd::CheckDeferred(std::string_view(reinterpret_cast<const char*>(data), size),
                           trace);
  return 0;
}
