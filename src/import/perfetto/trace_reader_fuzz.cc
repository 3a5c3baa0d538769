// Hostile trace files: whatever is in them, the tables hold together.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "import/perfetto/trace_reader.h"
#include "tables/block_index.h"
#include "tables/decode_queue.h"

namespace heapprofd {
namespace {

void CheckBlocks(const ImportedTrace& trace, size_t callsites) {
  const LiveBlockTable& blocks = trace.live_blocks;
  for (size_t row = 0; row < blocks.row_count(); ++row) {
    HPD_CHECK(blocks.dump[row] < trace.dumps.size());
    HPD_CHECK(blocks.callsite[row] < callsites);
  }
  const BlockIndex index(trace);
  const HeapGraphTables& heap = trace.heap_graph;
  for (const HeapDirectBuffer& buffer : heap.direct_buffers) {
    HPD_CHECK(buffer.object < heap.objects.row_count());
    const uint32_t upid = heap.graphs[heap.objects.graph[buffer.object]].upid;
    const uint32_t block = index.Find(upid, buffer.address);
    HPD_CHECK(block == kNoId || blocks.address[block] <= buffer.address);
  }
}

void CheckTables(const ImportedTrace& trace) {
  for (size_t row = 0; row < trace.callsites.row_count(); ++row) {
    const uint32_t parent = trace.callsites.parent[row];
    HPD_CHECK(parent == kNoId || parent < row);
    HPD_CHECK(trace.callsites.frame[row] < trace.frames.row_count());
  }
  for (uint32_t row = 0; row < trace.stacks.row_count(); ++row) {
    HPD_CHECK(!trace.stacks.FramesOf(row).empty());
    for (const uint32_t frame : trace.stacks.FramesOf(row))
      HPD_CHECK(frame < trace.frames.row_count());
  }
  for (size_t row = 0; row < trace.frames.row_count(); ++row) {
    HPD_CHECK(trace.frames.mapping[row] < trace.mappings.size());
    const uint32_t set = trace.frames.symbol_set[row];
    HPD_CHECK(set == kNoId || trace.symbols.set[set] == set);
  }
  for (const ImportedProcess& process : trace.processes)
    HPD_CHECK(process.end == kNoId || process.end < trace.process_ends.size());
  size_t rows = 0;
  for (const ImportedDump& dump : trace.dumps) {
    HPD_CHECK(dump.upid < trace.processes.size());
    HPD_CHECK(dump.first_allocation == rows);
    rows += dump.allocation_count;
  }
  HPD_CHECK(rows == trace.allocations.row_count());
  const size_t callsites =
      std::max(trace.callsites.row_count(), trace.stacks.row_count());
  for (size_t row = 0; row < rows; ++row)
    HPD_CHECK(trace.allocations.callsite[row] < callsites);
  CheckBlocks(trace, callsites);
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
  HPD_CHECK(trace.live_blocks.row_count() == want.live_blocks.row_count());
  HPD_CHECK(trace.stats.values() == want.stats.values());
}

// Frames of a whole stack are those on the way to its callsite. (Frames that mapping
// files have added have other numbers.)
void CheckWholeStacks(std::string_view bytes, const ImportedTrace& want) {
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  builder.ReadForConversion();
  MemorySource source(bytes);
  static_cast<void>(ReadTrace(source, "fuzz", builder));
  CheckTables(trace);
  HPD_CHECK(trace.callsites.row_count() == 0);
  HPD_CHECK(trace.stats.values() == want.stats.values());
  HPD_CHECK(trace.allocations.row_count() == want.allocations.row_count());
  for (size_t row = 0; row < trace.allocations.row_count(); ++row) {
    uint32_t callsite = want.allocations.callsite[row];
    const auto stack = trace.stacks.FramesOf(trace.allocations.callsite[row]);
    for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) {
      HPD_CHECK(callsite != kNoId);
      HPD_CHECK(trace.frames.rel_pc[*frame] ==
                want.frames.rel_pc[want.callsites.frame[callsite]]);
      callsite = want.callsites.parent[callsite];
    }
    HPD_CHECK(callsite == kNoId);
  }
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  heapprofd::ImportedTrace trace;
  heapprofd::TraceBuilder builder(&trace);
  heapprofd::MemorySource source(bytes);
  static_cast<void>(heapprofd::ReadTrace(source, "fuzz", builder));
  static_cast<void>(heapprofd::TraceWarnings(trace.stats));
  heapprofd::CheckTables(trace);
  heapprofd::CheckDeferred(bytes, trace);
  heapprofd::CheckWholeStacks(bytes, trace);
  return 0;
}
