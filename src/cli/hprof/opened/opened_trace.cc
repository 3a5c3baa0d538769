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
  constexpr double kSecondNs = 1e9;
  const ImportedHeapGraph& graph = trace.heap_graph.graphs[row];
  const ImportedProcess& process = trace.processes[graph.upid];
  char time[32];
  snprintf(time, sizeof(time), "%.3f s", static_cast<double>(graph.ts) / kSecondNs);
  const std::string_view name = trace.Text(process.name);
  return Printable(name.empty() ? "a process without a name" : name) + " (pid " +
         std::to_string(process.pid) + ") at " + time;
}

// " 1: com.example.app (pid 7) at 12.345 s, 2: ..."
std::string List(const ImportedTrace& trace, const std::vector<uint32_t>& heaps) {
  std::string list;
  for (size_t i = 0; i < std::min(heaps.size(), kHeapsListed); ++i)
    list +=
        (i == 0 ? " " : ", ") + std::to_string(i + 1) + ": " + Describe(trace, heaps[i]);
  return list + (heaps.size() > kHeapsListed ? ", and so on" : "");
}

int64_t PidOf(const ImportedTrace& trace, uint32_t row) {
  return trace.processes[trace.heap_graph.graphs[row].upid].pid;
}

std::string NoteOfChoice(const ImportedTrace& trace,
                         const std::vector<uint32_t>& heaps,
                         size_t chosen,
                         uint64_t process) {
  const std::string whose =
      process == 0 ? "in it" : "of process " + std::to_string(process);
  const bool has_others = std::ranges::any_of(
      heaps, [&](uint32_t row) { return PidOf(trace, row) != PidOf(trace, heaps[0]); });
  return "dump " + std::to_string(chosen + 1) + " of the " +
         std::to_string(heaps.size()) + " heaps " + whose + " is shown; --dump N is" +
         List(trace, heaps) +
         (has_others ? "; -p PID leaves only those of one process" : "");
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
                                   uint64_t number,
                                   uint64_t process) {
  OpenedDump opened{path, nullptr, std::make_unique<GraphOfTrace>()};
  HPD_TRY(ImportHeaps(input, &opened));
  const ImportedTrace& trace = opened.trace->tables;
  std::vector<uint32_t> heaps = HeapRowsOf(trace);
  if (heaps.empty())
    return Status(
        StatusCode::kNotFound,
        "cannot examine " + path +
            ": the trace has no heap graph; the data source android.java_hprof records "
            "one, and heap_profile hprof trace makes one of a dump" +
            (opened.notes.empty() ? "" : "; " + opened.notes[0]));
  if (process != 0) {
    const std::string all = List(trace, heaps);
    std::erase_if(heaps, [&](uint32_t row) {
      return static_cast<uint64_t>(PidOf(trace, row)) != process;
    });
    if (heaps.empty())
      return Status(StatusCode::kNotFound,
                    "cannot examine process " + std::to_string(process) + " in " + path +
                        ": the trace has no heap graph of it; it has" + all);
  }
  if (number > heaps.size())
    return Invalid("cannot examine dump " + std::to_string(number) + " of " + path +
                   ": the trace has " + std::to_string(heaps.size()) +
                   (process == 0 ? "" : " of process " + std::to_string(process)));
  opened.number = number == 0 ? heaps.size() : number;
  const size_t chosen = opened.number - 1;
  opened.trace->graph = heaps[chosen];
  if (heaps.size() > 1)
    opened.notes.push_back(NoteOfChoice(trace, heaps, chosen, process));
  if (trace.heap_graph.graphs[heaps[chosen]].truncated) {
    opened.is_damaged = true;
    opened.notes.emplace_back(
        "packets of this heap are missing: objects, and what holds them, may be, too");
  }
  return opened;
}

}  // namespace heapprofd
