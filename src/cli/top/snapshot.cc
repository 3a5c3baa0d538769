#include "cli/top/snapshot.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "cli/kept_dump.h"
#include "trace/trace_writer.h"

namespace heapprofd {
namespace {

constexpr int kMostSnapshots = 1000;

struct NextFile {
  std::string name;
  KeptDump file;
};

// `pid`: of the process that is shown, which people know, or of the first one.
Result<NextFile> CreateNext(pid_t pid) {
  for (int number = 1; number <= kMostSnapshots; ++number) {
    const std::string name =
        "heap-" + std::to_string(pid) + "-" + std::to_string(number) + ".trace";
    Result<KeptDump> file = KeptDump::Create(name);
    if (file.ok())
      return NextFile{.name = name, .file = std::move(file).value()};
    if (file.status().code() != StatusCode::kInvalidArgument)  // else it is there
      return file.status();
  }
  return Status(StatusCode::kUnavailable,
                "cannot write a snapshot: there are a thousand of this process already; "
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

Result<std::string> WriteSnapshot(const LiveProcesses& processes) {
  HPD_TRY_ASSIGN(
      NextFile next,
      CreateNext(processes.empty() ? getpid() : processes[0]->profile().process.pid));
  ScopedFd fd(fcntl(next.file.fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid())
    return Status::FromErrno("cannot write trace " + next.name, errno);
  TraceWriter writer(TraceFile(std::move(fd), next.name));
  HPD_TRY(writer.WriteHeader(""));
  uint64_t id = 0;
  for (RestoredProfile* process : processes) {
    const TargetProfile profile = WithMonotonicTimes(process->profile());
    HPD_TRY(writer.WriteProcessTree({&profile.process, 1}));
    HPD_TRY(writer.WriteDump(profile, id++, DumpFlags()));
    HPD_TRY(writer.WriteModuleSymbols(
        profile, processes.size() == 1 ? NamedModules::kAll : NamedModules::kFiles));
  }
  HPD_TRY(writer.WriteEnd({}));
  HPD_TRY(writer.Finish());
  HPD_TRY_ASSIGN(const ScopedFd kept, next.file.Keep());
  return next.name;
}

}  // namespace heapprofd
