#include "cli/record/managed_heaps.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <utility>

#include "base/format.h"
#include "base/print.h"
#include "cli/exit_code.h"
#include "cli/hprof/examined_dump.h"
#include "cli/hprof/kept_dump.h"
#include "cli/record/signals.h"
#include "cli/record/status_line.h"
#include "export/heap_graph_packets.h"
#include "hotspot/heap_dump.h"
#include "hprof/direct_buffers.h"
#include "hprof/graph_tables.h"
#include "import/import_file.h"
#include "profile/model.h"
#include "trace/service_packets.h"
#include "trace/trace_file.h"

namespace heapprofd {
namespace {

constexpr MachinePatience kDumpPatience = {.until_it_listens_ns = 10'000'000'000,
                                           .without_progress_ns = 300'000'000'000};
constexpr MachinePatience kFiguresPatience = {.until_it_listens_ns = 10'000'000'000,
                                              .without_progress_ns = 10'000'000'000};
constexpr uint32_t kSequence = 0x4a415641;  // of the trace: nobody else's

// What the recording says of malloc in the process; nullopt: nothing.
std::optional<MallocEstimate> MallocOf(pid_t pid, const std::string& trace_path) {
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  builder.ReadForConversion();
  if (!ImportFile(trace_path, builder).ok())
    return std::nullopt;
  std::map<uint32_t, double> live;  // by upid: it may have run several programs
  const ImportedDump* last = nullptr;
  for (const ImportedDump& dump : trace.dumps) {
    if (trace.processes[dump.upid].pid != pid || dump.is_peak ||
        trace.Text(dump.heap_name) != kMallocHeapName)
      continue;
    last = &dump;
    for (size_t i = 0; i < dump.allocation_count; ++i)
      live[dump.upid] +=
          static_cast<double>(trace.allocations.size[dump.first_allocation + i]);
  }
  if (last == nullptr || !last->live_low || !last->live_high)
    return std::nullopt;
  return MallocEstimate{live[last->upid], static_cast<double>(*last->live_low),
                        static_cast<double>(*last->live_high)};
}

bool IsLibraryClass(const std::string& name) {
  return name.ends_with("[]") ||
         std::ranges::any_of(
             std::initializer_list<const char*>{"java.", "javax.", "jdk.", "sun."},
             [&](const char* prefix) { return name.starts_with(prefix); });
}

// Of the nearest that holds `object` alone and is not of Java's own classes; else of the
// outermost.
std::string OwnerOf(const Examined& examined,
                    const hprof::DumpFile& file,
                    uint32_t object) {
  const Column<uint32_t>& dominator = examined.tree.dominator;
  if (dominator[object] == kUnreachable)
    return "nobody: they are garbage";
  std::string name = "several at once";
  for (uint32_t at = dominator[object]; at != kHeldByRoots; at = dominator[at]) {
    constexpr std::string_view kClass = "class ";
    name = ObjectName(examined.heap, file, at);
    name.erase(0, name.starts_with(kClass) ? kClass.size() : 0);
    if (!IsLibraryClass(name))
      break;
  }
  return name;
}

Result<std::vector<BufferOwner>> OwnersIn(OpenedDump* opened) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(opened));
  std::map<std::string, BufferOwner> by_name;
  for (const hprof::DirectBuffer& buffer :
       hprof::DirectBuffersOf(opened->file, *opened->dump, examined.heap)) {
    BufferOwner& owner = by_name[OwnerOf(examined, opened->file, buffer.object)];
    ++owner.buffers;
    owner.bytes += buffer.bytes;
  }
  std::vector<BufferOwner> owners;
  owners.reserve(by_name.size());
  for (auto& [name, owner] : by_name)
    owners.push_back({name, owner.buffers, owner.bytes});
  std::ranges::stable_sort(owners, std::ranges::greater(), &BufferOwner::bytes);
  return owners;
}

// All or nothing.
Status AppendPackets(const ImportedTrace& trace,
                     const HeapGraphSource& source,
                     const std::string& trace_path) {
  const ScopedFd file(open(trace_path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));

  struct stat status {};

  if (!file.valid() || fstat(file.get(), &status) != 0)
    return Status::FromErrno("cannot open " + trace_path, errno);
  TraceFile output(ScopedFd(fcntl(file.get(), F_DUPFD_CLOEXEC, 0)), trace_path);
  Status written = WriteHeapGraph(trace, 0, source, [&output](const std::string& packet) {
    return output.Append(packet);
  });
  if (written.ok())
    written = output.Flush();
  if (!written.ok() && ftruncate(file.get(), status.st_size) != 0)
    Print(stderr, "heap_profile: %s has a part of a Java heap at its end\n",
          trace_path.c_str());
  return written;
}

}  // namespace

Result<ManagedHeaps> ManagedHeaps::Of(const std::vector<pid_t>& pids) {
  ManagedHeaps heaps;
  for (const pid_t pid : pids) {
    HPD_TRY_ASSIGN(JavaProcess process, OpenJavaProcess(pid));
    heaps.heaps_.push_back({.process = std::move(process)});
  }
  return heaps;
}

void ManagedHeaps::Take(bool quiet) {
  SteeringSignals signals;
  for (Heap& heap : heaps_)
    TakeOne(&heap, quiet);
  while (signals.Next())  // they were for the dump, and end nothing else
    continue;
  sigprocmask(SIG_SETMASK, &signals.original_mask(), nullptr);
}

void ManagedHeaps::TakeOne(Heap* heap, bool quiet) {
  const ScopedFd stop = StopRequests();
  const Result<MachineMemory> memory =
      AskForMemory(heap->process, kFiguresPatience, stop.get());
  if (memory.ok()) {
    heap->memory = memory.value();
    heap->resident = ReadResidentMemory(heap->process.pid, memory.value());
  }
  Result<KeptDump> kept = KeptDump::Create("");
  if (!kept.ok()) {
    Fail(kept.status());
    return;
  }
  StatusLine line(!quiet);
  heap->ts = BootTimeNs();
  // With what garbage there is: the heap as it is, like the native one.
  const Result<TakenDump> taken =
      TakeHeapDump(heap->process,
                   {.with_garbage = true,
                    .patience = kDumpPatience,
                    .show = [&line](const std::string& text) { line.Show(text); },
                    .stop_fd = stop.get()},
                   kept.value().fd(), kept.value().room());
  line.Clear();
  const std::string process = heap->process.Description();
  if (taken.ok() && !taken.value().left.empty())
    Print(stderr, "%s: %s; remove it\n", process.c_str(), taken.value().left.c_str());
  Result<ScopedFd> dump = taken.ok() ? kept.value().Keep() : taken.status();
  if (!dump.ok()) {
    Fail(dump.status());
    return;
  }
  heap->dump = std::move(dump).value();
  if (!memory.ok())
    Print(stderr, "heap_profile: %s\n", memory.status().message().c_str());
  else if (!heap->resident)
    Print(stderr, "heap_profile: the kernel has not shown where the memory of %s is\n",
          process.c_str());
  if (!quiet)
    Print(stderr, "%s took %s to dump %s of its Java heap\n", process.c_str(),
          FormatDuration(taken.value().seconds).c_str(),
          FormatBytes(static_cast<double>(taken.value().bytes)).c_str());
}

bool ManagedHeaps::AddTo(const std::string& trace_path, bool quiet) {
  bool are_all_there = true;
  for (Heap& heap : heaps_) {
    if (!heap.dump.valid()) {
      are_all_there = false;
      continue;
    }
    const Status status = AddOne(&heap, trace_path, quiet);
    if (!status.ok())
      Fail(status);
    are_all_there &= status.ok();
  }
  return are_all_there;
}

Status ManagedHeaps::AddOne(Heap* heap, const std::string& trace_path, bool quiet) {
  const std::string process = heap->process.Description();
  const std::optional<MallocEstimate> malloc = MallocOf(heap->process.pid, trace_path);
  HPD_TRY_ASSIGN(hprof::MappedInput input,
                 hprof::MappedInput::Map(std::move(heap->dump), process));
  HPD_TRY_ASSIGN(OpenedDump opened, OpenDump(std::move(input), process, 0));
  {
    ImportedTrace trace;
    TraceBuilder builder(&trace);
    hprof::GraphSource source;
    HPD_TRY(AddGraph(opened.file, *opened.dump, &source, &builder, &opened.notes));
    HPD_TRY(AppendPackets(
        trace, {.pid = heap->process.pid, .ts = heap->ts, .sequence_id = kSequence},
        trace_path));
  }
  for (const std::string& note : opened.notes)
    Print(stderr, "%s: %s\n", process.c_str(), note.c_str());
  if (quiet || !heap->resident)
    return {};
  Result<std::vector<BufferOwner>> owners = OwnersIn(&opened);
  if (!owners.ok())
    Print(stderr, "%s: %s\n", process.c_str(), owners.status().message().c_str());
  Print(stderr, "\n%s",
        FormatResidentTable({.process = process,
                             .resident = *heap->resident,
                             .memory = *heap->memory,
                             .malloc = malloc,
                             .owners = owners.ok() ? std::move(owners).value()
                                                   : std::vector<BufferOwner>()})
            .c_str());
  return {};
}

}  // namespace heapprofd
