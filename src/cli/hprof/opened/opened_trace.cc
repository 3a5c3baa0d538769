#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "cli/hprof/opened/opened_dump.h"
#include "cli/load_trace.h"
#include "hprof/format.h"
#include "import/import_file.h"

namespace heapprofd {
namespace {

constexpr size_t kHeapsListed = 10;
constexpr size_t kMostHead = 4096;

// Those with objects.
std::vector<uint32_t> HeapRowsOf(const ImportedTrace& trace) {
  std::vector<uint32_t> rows;
  for (uint32_t row = 0; row < trace.heap_graph.graphs.size(); ++row) {
    if (trace.heap_graph.graphs[row].object_count > 0)
      rows.push_back(row);
  }
  return rows;
}

// "com.example.app (pid 7) at 12.345 s".
std::string Describe(const ImportedTrace& trace, uint32_t row) {
  constexpr double kNsPerSecond = 1e9;
  const ImportedHeapGraph& graph = trace.heap_graph.graphs[row];
  const ImportedProcess& process = trace.processes[graph.upid];
  char time[32];
  snprintf(time, sizeof(time), "%.3f s", static_cast<double>(graph.ts) / kNsPerSecond);
  const std::string_view name = trace.Text(process.name);
  return Printable(name.empty() ? "a process without a name" : name) + " (pid " +
         std::to_string(process.pid) + ") at " + time;
}

std::string NoteOfChoice(const ImportedTrace& trace,
                         const std::vector<uint32_t>& heaps,
                         size_t chosen) {
  std::string note = "dump " + std::to_string(chosen + 1) + " of the " +
                     std::to_string(heaps.size()) + " heaps in it is shown; --dump N is";
  for (size_t i = 0; i < std::min(heaps.size(), kHeapsListed); ++i)
    note +=
        (i == 0 ? " " : ", ") + std::to_string(i + 1) + ": " + Describe(trace, heaps[i]);
  return note + (heaps.size() > kHeapsListed ? ", and so on" : "");
}

// What was not right in the file.
Status ImportHeaps(const hprof::MappedInput& input, OpenedDump* opened) {
  TraceBuilder builder(&opened->trace->tables);
  builder.DeferDecoding();  // native heaps are not asked for
  MemorySource bytes(input.bytes());
  HPD_TRY_ASSIGN(const ImportReport report, ImportBytes(bytes, opened->path, builder));
  HPD_TRY(input.Check());
  HPD_TRY(DeobfuscateLoaded("heap_profile hprof", builder));
  for (const std::string& damage : {input.damage(), report.damage}) {
    if (!damage.empty())
      opened->notes.push_back(damage);
    opened->is_damaged = opened->is_damaged || !damage.empty();
  }
  for (std::string& warning : TraceWarnings(opened->trace->tables.stats))
    opened->notes.push_back(std::move(warning));
  return {};
}

}  // namespace

bool IsTrace(std::string_view bytes) {
  return !bytes.starts_with(hprof::kMagic) &&
         DetectFormat(bytes.substr(0, kMostHead)) == FileFormat::kPerfettoTrace;
}

Result<OpenedDump> OpenTraceOfHeap(const hprof::MappedInput& input,
                                   const std::string& path,
                                   uint64_t number) {
  OpenedDump opened{path, nullptr, std::make_unique<GraphOfTrace>()};
  HPD_TRY(ImportHeaps(input, &opened));
  const ImportedTrace& trace = opened.trace->tables;
  const std::vector<uint32_t> heaps = HeapRowsOf(trace);
  if (heaps.empty())
    return Status(
        StatusCode::kNotFound,
        "cannot examine " + path +
            ": the trace has no heap graph; the data source android.java_hprof records "
            "one, and heap_profile hprof trace makes one of a dump" +
            (opened.notes.empty() ? "" : "; " + opened.notes[0]));
  if (number > heaps.size())
    return Invalid("cannot examine dump " + std::to_string(number) + " of " + path +
                   ": the trace has " + std::to_string(heaps.size()));
  opened.number = number == 0 ? heaps.size() : number;
  const size_t chosen = opened.number - 1;
  opened.trace->graph = heaps[chosen];
  if (heaps.size() > 1)
    opened.notes.push_back(NoteOfChoice(trace, heaps, chosen));
  if (trace.heap_graph.graphs[heaps[chosen]].truncated) {
    opened.is_damaged = true;
    opened.notes.emplace_back(
        "packets of this heap are missing: objects, and what holds them, may be, too");
  }
  return opened;
}

}  // namespace heapprofd
