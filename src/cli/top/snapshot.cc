#include "cli/top/snapshot.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "trace/trace_writer.h"

namespace heapprofd {
namespace {

constexpr int kMostSnapshots = 1000;

struct NewFile {
  std::string name;
  TraceFile file;
};

Result<NewFile> CreateNext() {
  for (int number = 1; number <= kMostSnapshots; ++number) {
    const std::string name =
        "heap-" + std::to_string(getpid()) + "-" + std::to_string(number) + ".trace";
    if (access(name.c_str(), F_OK) == 0)
      continue;
    HPD_TRY_ASSIGN(TraceFile file, TraceFile::Create(name));
    return NewFile{.name = name, .file = std::move(file)};
  }
  return Status(StatusCode::kUnavailable,
                "cannot write a snapshot: there are a thousand of this view already; "
                "move them away");
}

// Times are those of CLOCK_MONOTONIC in a profile, and of CLOCK_BOOTTIME in one that was
// read from a trace.
TargetProfile WithMonotonicTimes(TargetProfile profile) {
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  const uint64_t boot_ns = static_cast<uint64_t>(boot.tv_sec) * 1'000'000'000u +
                           static_cast<uint64_t>(boot.tv_nsec);
  const uint64_t asleep_ns = boot_ns - std::min(boot_ns, MonotonicNs());
  const auto shift = [asleep_ns](uint64_t& time_ns) {
    time_ns -= std::min(time_ns, asleep_ns);
  };
  shift(profile.process.start_ns);
  for (HeapDump& heap : profile.heaps) {
    shift(heap.start_ns);
    shift(heap.end_ns);
    shift(heap.peak_ns);
  }
  return profile;
}

}  // namespace

Result<std::string> WriteSnapshot(
    const std::vector<std::unique_ptr<RestoredProfile>>& processes) {
  HPD_TRY_ASSIGN(NewFile next, CreateNext());
  TraceWriter writer(std::move(next.file));
  HPD_TRY(writer.WriteHeader(""));
  uint64_t id = 0;
  for (const auto& process : processes) {
    const TargetProfile profile = WithMonotonicTimes(process->profile());
    HPD_TRY(writer.WriteProcessTree({&profile.process, 1}));
    HPD_TRY(writer.WriteDump(profile, id++, DumpFlags()));
    HPD_TRY(writer.WriteModuleSymbols(profile));
  }
  HPD_TRY(writer.Finish());
  return next.name;
}

}  // namespace heapprofd
