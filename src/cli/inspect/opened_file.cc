#include "cli/inspect/opened_file.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/print.h"
#include "cli/open_traces.h"
#include "cli/results/process_order.h"
#include "hprof/graph_tables.h"
#include "import/import_file.h"
#include "query/allocators.h"
#include "tables/last_dumps.h"

namespace heapprofd {
namespace {

void AddProcesses(OpenedFile& file) {
  const ImportedTrace& trace = file.trace();
  std::map<uint32_t, size_t> known;  // by upid
  for (const uint32_t dump : LastDumps(trace)) {
    const uint32_t upid = trace.dumps[dump].upid;
    const auto [entry, is_new] = known.try_emplace(upid, file.processes.size());
    if (is_new)
      file.processes.push_back(
          std::make_unique<RestoredProfile>(trace, file.is_allocator, *file.sums, upid));
    file.processes[entry->second]->AddHeap(dump);
  }
  std::stable_sort(file.processes.begin(), file.processes.end(),
                   [](const auto& a, const auto& b) {
                     return RankOf(a->profile()) > RankOf(b->profile());
                   });
}

}  // namespace

Status OpenedFile::Complete() {
  if (is_complete)
    return {};
  HPD_TRY(database->Decode());
  is_allocator = AllocatorFrames(trace());
  sums = std::make_unique<HeapSums>(trace());
  AddProcesses(*this);
  is_complete = true;
  return {};
}

std::vector<uint32_t> OpenedFile::DumpsOf(uint32_t upid,
                                          const std::string& heap_name) const {
  const auto dumps = sums->processes().DumpsOf(upid, trace().strings.Find(heap_name));
  return {dumps.begin(), dumps.end()};
}

bool OpenedFile::is_at_maximum() const {
  return std::any_of(trace().dumps.begin(), trace().dumps.end(),
                     [](const ImportedDump& dump) { return dump.is_peak; });
}

bool OpenedFile::tells_end() const {
  return !is_at_maximum() || trace().cumulative.row_count() > 0;
}

double OpenedFile::seconds() const {
  if (trace().recording_end && trace().recording_end->seconds > 0)
    return trace().recording_end->seconds;
  int64_t begin = INT64_MAX;
  int64_t end = INT64_MIN;
  for (const ImportedDump& dump : trace().dumps) {
    if (!dump.start_ts)
      continue;
    begin = std::min(begin, *dump.start_ts);
    end = std::max(end, dump.ts);
  }
  return end > begin ? static_cast<double>(end - begin) / 1e9 : 0;
}

std::string OpenedFile::ReasonForNothing() const {
  if (!processes.empty() && HasSamples(processes[0]->profile()))
    return "";
  for (const auto& process : processes) {
    if (!process->profile().reason.empty())
      return process->profile().reason;
  }
  if (!trace().heap_graph.graphs.empty())
    return "it has Java heaps only; heap_profile hprof leaks, heap_profile report, "
           "heap_profile query and heap_profile traceconv java_heap_profile show them";
  if (trace().is_cut)
    return "the file is incomplete, and what could be read of it has no samples; copy it "
           "again, or record again";
  return processes.empty() ? "it has no heap profile"
                           : "no sample was taken of its processes' allocations";
}

bool OpenedFile::TellsSomething(const char* command) const {
  const std::string reason = ReasonForNothing();
  if (!reason.empty())
    SayNothingToTell(command, *this, reason);
  return reason.empty();
}

void SayNothingToTell(const char* command,
                      const OpenedFile& file,
                      const std::string& reason) {
  Print(stderr, "%s: nothing to tell of %s: %s\n", command, file.path.c_str(),
        reason.c_str());
}

Result<std::unique_ptr<OpenedFile>> OpenFile(const std::string& path,
                                             const std::string& tool) {
  if (hprof::IsDump(path))
    return Invalid("cannot read " + path +
                   ": it is a heap dump of Java; heap_profile hprof leaks FILE and "
                   "heap_profile report FILE show what is in it");
  ReturnFreedMemory();
  HPD_TRY_ASSIGN(std::unique_ptr<OpenedFile> file, OpenFiles({path}, tool));
  HPD_TRY(file->Complete());
  return file;
}

Result<std::unique_ptr<OpenedFile>> OpenFiles(const std::vector<std::string>& paths,
                                              const std::string& tool) {
  auto file = std::make_unique<OpenedFile>();
  for (const std::string& path : paths)
    file->path += (file->path.empty() ? "" : ", ") + path;
  HPD_TRY_ASSIGN(file->database, OpenTraces(
                                     paths, tool,
                                     [it = file.get()](const std::string& warning) {
                                       it->warnings.push_back(warning);
                                     },
                                     StackForm::kWhole));
  return file;
}

Result<std::unique_ptr<OpenedFile>> OpenOwn(ByteSource& source, const std::string& name) {
  auto file = std::make_unique<OpenedFile>();
  file->path = name;
  HPD_TRY_ASSIGN(
      file->database,
      OpenOwnTrace(source, name, [it = file.get()](const std::string& warning) {
        it->warnings.push_back(warning);
      }));
  HPD_TRY(file->database->Decode());
  return file;
}

}  // namespace heapprofd
