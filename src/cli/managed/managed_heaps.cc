#include "cli/managed/managed_heaps.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/format.h"
#include "base/print.h"
#include "cli/exit_code.h"
#include "cli/hprof/opened/opened_dump.h"
#include "cli/kept_dump.h"
#include "cli/managed/append_graph.h"
#include "cli/managed/buffer_holders.h"
#include "cli/managed/native_side.h"
#include "cli/record/signals.h"
#include "cli/record/status_line.h"
#include "cli/text_layout.h"
#include "hotspot/heap_dump.h"
#include "trace/service_packets.h"

namespace heapprofd {
namespace {

constexpr char kAskAlone[] = "ask it alone by heap_profile java, which has --timeout";
constexpr MachinePatience kDumpPatience = {.until_it_listens_ns = 10'000'000'000,
                                           .without_progress_ns = 300'000'000'000,
                                           .advice = kAskAlone};
constexpr MachinePatience kFiguresPatience = {.until_it_listens_ns = 10'000'000'000,
                                              .without_progress_ns = 10'000'000'000,
                                              .advice = kAskAlone};
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
  const SteeringSignals signals;
  for (Heap& heap : heaps_)
    TakeOne(&heap, quiet);
  TakeInterrupt();
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
                    .room_advice = "heap_profile java --keep writes one to a file",
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

bool ManagedHeaps::AddTo(const FilePlace& trace, bool quiet) {
  const bool has_tables = !quiet && std::ranges::any_of(heaps_, [](const Heap& heap) {
    return heap.dump.valid() && heap.resident;
  });
  // Once for all, and before anything is added.
  std::optional<NativeSide> native;
  if (has_tables)
    native.emplace(trace.at);
  bool are_all_there = true;
  for (Heap& heap : heaps_) {
    if (!heap.dump.valid()) {
      are_all_there = false;
      continue;
    }
    const Status status = AddOne(&heap, trace, native ? &*native : nullptr);
    if (!status.ok())
      Fail(status);
    are_all_there &= status.ok();
  }
  return are_all_there;
}

Status ManagedHeaps::AddOne(Heap* heap, const FilePlace& trace, NativeSide* native) {
  const std::string process = heap->process.Description();
  HPD_TRY_ASSIGN(hprof::MappedInput input,
                 hprof::MappedInput::Map(std::move(heap->dump), process));
  HPD_TRY_ASSIGN(OpenedDump opened, OpenDump(std::move(input), process, 0));
  HPD_TRY_ASSIGN(
      const std::vector<HeapDirectBuffer> buffers,
      AppendGraph(&opened,
                  {.pid = heap->process.pid, .ts = heap->ts, .with_buffers = true},
                  trace));
  if (native == nullptr || !heap->resident)
    return {};
  MachineFigures figures{.process = process,
                         .resident = *heap->resident,
                         .memory = *heap->memory,
                         .malloc = native->MallocOf(heap->process.pid),
                         .use_unicode = TerminalShowsUnicode()};
  Result<HeldBuffers> held = FindHolders(buffers, heap->process.pid, &opened, native);
  if (held.ok()) {
    figures.owners = std::move(held.value().owners);
    figures.unsampled = held.value().unsampled;
  } else {
    Print(stderr, "%s: %s\n", process.c_str(), held.status().message().c_str());
  }
  PrintLines(stderr, "\n" + FormatResidentTable(figures));
  return {};
}

}  // namespace heapprofd
