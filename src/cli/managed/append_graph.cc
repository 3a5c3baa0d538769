#include "cli/managed/append_graph.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/print.h"
#include "export/heap_graph_packets.h"
#include "hprof/graph_tables.h"
#include "trace/trace_file.h"

namespace heapprofd {
namespace {

constexpr uint32_t kSequence = 0x4a415641;  // of the trace: nobody else's

Status AppendPackets(const ImportedTrace& trace,
                     const HeapGraphSource& source,
                     const FilePlace& place) {
  const ScopedFd file(open(place.at.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  ScopedFd duplicate(fcntl(file.get(), F_DUPFD_CLOEXEC, 0));

  struct stat status {};

  if (!duplicate.valid() || fstat(file.get(), &status) != 0)
    return Status::FromErrno("cannot open " + place.path, errno);
  TraceFile output(std::move(duplicate), place.path);
  Status written = WriteHeapGraph(trace, 0, source, [&output](const std::string& packet) {
    return output.Append(packet);
  });
  if (written.ok())
    written = output.Flush();
  if (!written.ok() && ftruncate(file.get(), status.st_size) != 0)
    Print(stderr, "heap_profile: %s has a part of a Java heap at its end\n",
          place.path.c_str());
  return written;
}

}  // namespace

Result<std::vector<HeapDirectBuffer>> AppendGraph(OpenedDump* opened,
                                                  const HeapMoment& moment,
                                                  const FilePlace& place) {
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  hprof::GraphSource source;
  HPD_TRY(AddGraph(opened->source->file, *opened->source->dump, &source, &builder,
                   &opened->notes));
  std::vector<HeapDirectBuffer>& buffers = trace.heap_graph.direct_buffers;
  if (!moment.with_buffers)
    buffers.clear();
  HPD_TRY(AppendPackets(
      trace, {.pid = moment.pid, .ts = moment.ts, .sequence_id = kSequence}, place));
  PrintNotes(*opened);
  return std::move(buffers);
}

}  // namespace heapprofd
