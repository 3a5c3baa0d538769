#include "attach/refusals.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "attach/remote_process.h"
#include "attach/thread/seccomp_filters.h"
#include "attach/thread/thread_states.h"
#include "base/files/memory_limits.h"

namespace heapprofd {
namespace {

std::string InMiB(uint64_t bytes) {
  return std::to_string((bytes + (uint64_t{1} << 19)) >> 20) + " MiB";
}

// Limits that make the kernel refuse memory with ENOMEM.
struct MemoryLimit {
  const char* name;   // in /proc/PID/limits
  const char* field;  // in /proc/PID/status, of what counts against it
  const char* words;
  const char* option;  // of prlimit(1)
};

constexpr MemoryLimit kMemoryLimits[] = {
    {"Max address space", "VmSize", "its address space (RLIMIT_AS)", "as"},
    {"Max data size", "VmData", "its data (RLIMIT_DATA)", "data"}};

Status LimitReached(pid_t pid,
                    uint64_t size,
                    const std::string& what,
                    std::optional<uint64_t> limit,
                    const std::string& option) {
  return CannotAttach(
      pid, InMiB(size) + " of memory for the profiler exceed the limit of " + what +
               (limit ? ", " + InMiB(*limit) : "") + "; raise it (prlimit --pid " +
               std::to_string(pid) + " --" + option + "=unlimited, as root)");
}

}  // namespace

// The kernel counts all memory that a process maps after mlockall(MCL_FUTURE), and says
// EAGAIN; ENOMEM for all other limits, and when there is none.
Status MemoryRefused(pid_t pid, int error, uint64_t size) {
  const std::string limits = ReadProcFile(ProcPath(pid, "limits"), 16384);
  if (error == EAGAIN)
    return LimitReached(pid, size, "what it may lock (mlockall, RLIMIT_MEMLOCK)",
                        LimitIn(limits, "Max locked memory"), "memlock");
  const std::string status = ReadProcFile(ProcPath(pid, "status"), 16384);
  for (const MemoryLimit& kind : kMemoryLimits) {
    const std::optional<uint64_t> limit = LimitIn(limits, kind.name);
    if (error == ENOMEM && limit && SizeIn(status, kind.field) + size > *limit)
      return LimitReached(pid, size, kind.words, limit, kind.option);
  }
  if (error == EEXIST)
    return LostRace(pid, "it has just mapped memory where the profiler's was to be");
  return CannotAttach(pid, std::string("memory could not be mapped in it: ") +
                               strerror(error) +
                               "; see how many mappings it has (vm.max_map_count) and "
                               "how much memory is free");
}

Status IsInExecNow(pid_t pid) {
  return LostRace(pid, "it is about to execute another program");
}

Status SeizeError(pid_t pid, int error) {
  const std::string what = "cannot attach to process " + std::to_string(pid) + ": ";
  if (error == ESRCH)
    return Status(StatusCode::kNotFound, what + "it has ended");
  if (error == EAGAIN)
    return IsInExecNow(pid);
  const std::string tracer =
      StatusField(ReadProcFile(ProcPath(pid, "status"), 16384), "TracerPid");
  if (!tracer.empty() && tracer != "0")
    return Status(
        StatusCode::kUnavailable,
        what + "process " + tracer + " (" +
            CommandName(static_cast<pid_t>(strtol(tracer.c_str(), nullptr, 10))) +
            ") traces it already; end that first");
  const std::string obstacle =
      error == EPERM && IsUnderSeccomp(pid) ? ObstacleToSuspendingFilters() : "";
  if (!obstacle.empty())
    return Status(StatusCode::kUnavailable, what + obstacle);
  return Status(
      StatusCode::kUnavailable,
      what + strerror(error) + "; see heap_profile doctor -p " + std::to_string(pid));
}

Status CannotAttach(pid_t pid, const std::string& why) {
  return Status(StatusCode::kUnavailable,
                "cannot attach to process " + std::to_string(pid) + ": " + why);
}

Status LostRace(pid_t pid, const std::string& why) {
  return Status(StatusCode::kTryAgain, "cannot attach to process " + std::to_string(pid) +
                                           ": " + why + "; try again");
}

Status LostThread(pid_t pid, pid_t tid) {
  if (IsDead(pid, tid))
    return SeizeError(pid, ESRCH);
  return LostRace(pid, std::string("a thread of it") + kDidNotStop);
}

Status EndedAtStart(pid_t pid) {
  return CannotAttach(pid, "it ended before it had started");
}

Status CannotWriteMemory(pid_t pid) {
  return CannotAttach(pid, "the memory mapped for the profiler cannot be written to");
}

Status CannotWriteCode(pid_t pid) {
  return CannotAttach(
      pid,
      "its code cannot be written to, not even by a tracer; allow that to "
      "tracers (kernel option proc_mem.force_override)");
}

}  // namespace heapprofd
