#include "cli/hprof/graph_trace.h"

#include <string>

#include <protozero/pbf_writer.hpp>

#include "base/text.h"
#include "cli/output_file.h"
#include "export/heap_graph_packets.h"
#include "hprof/graph_tables.h"
#include "trace/fields.h"
#include "trace/service_packets.h"

namespace heapprofd {
namespace {

// A dump tells of no process; without one Perfetto's UI has no place for its heap.
constexpr int32_t kPid = 1;
constexpr uint32_t kSequence = 1;

}  // namespace

Status WriteGraphTrace(OpenedDump opened, const std::string& output, bool is_strict) {
  if (opened.is_of_trace())
    return Invalid(
        "cannot write " + opened.path +
        " as a trace: it is one already, and what reads traces reads it as it is");
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  hprof::GraphSource source;
  HPD_TRY(AddGraph(opened.source->file, *opened.source->dump, &source, &builder,
                   &opened.notes));
  HPD_TRY(opened.Check());
  if (is_strict && (opened.is_damaged || trace.heap_graph.graphs[0].truncated))
    return Status(StatusCode::kCorrupt,
                  "cannot write all of " + opened.path + " as a trace: it is damaged");
  HPD_TRY_ASSIGN(OutputFile file, OutputFile::CreateNamed(output));
  const auto write = [&file](const std::string& packet) {
    std::string framed;
    protozero::pbf_writer(framed).add_bytes(field::Trace::kPacket, packet);
    return file.Write(framed);
  };
  ProcessDescription process;
  process.pid = kPid;
  process.cmdline = {std::string(FileName(opened.path))};
  for (const std::string& message : ProcessTreeMessages({&process, 1})) {
    std::string packet;
    protozero::pbf_writer writer(packet);
    writer.add_uint64(field::TracePacket::kTimestamp, static_cast<uint64_t>(source.ts));
    writer.add_bytes(field::TracePacket::kProcessTree, message);
    HPD_TRY(write(packet));
  }
  HPD_TRY(WriteHeapGraph(
      trace, 0,
      {.pid = kPid, .ts = static_cast<uint64_t>(source.ts), .sequence_id = kSequence},
      write));
  HPD_TRY(file.Finish());
  PrintNotes(opened);
  return {};
}

}  // namespace heapprofd
