#include "attach/thread/exec_rights.h"

#include <linux/capability.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files/own_rights.h"

namespace heapprofd {
namespace {

constexpr uint64_t kQuietNs = 10'000'000;
constexpr uint64_t kLookAgainNs = 100'000;
constexpr size_t kMaxThreads = 64;  // that are looked at

enum class Activity { kWaits, kRuns, kExecutes };

// Also of one that has ended: it waits for ever.
Activity ActivityOf(pid_t tid) {
  const std::string text = ReadProcFile(ProcPath(tid, "syscall"), 64);
  if (text.starts_with("running"))
    return Activity::kRuns;
  const long number = text.empty() ? -1 : strtol(text.c_str(), nullptr, 10);
  return number == SYS_execve || number == SYS_execveat ? Activity::kExecutes
                                                        : Activity::kWaits;
}

// The busiest of all threads counts.
Activity ActivityOf(const std::vector<pid_t>& threads) {
  Activity most = Activity::kWaits;
  for (const pid_t tid : threads)
    most = std::max(most, ActivityOf(tid));
  return most;
}

}  // namespace

bool MayTraceExecs(pid_t pid) {
  return HasCapability(CAP_SYS_PTRACE) &&
         (IsInFirstUserNamespace() || IsInOurUserNamespace(pid).value_or(false));
}

bool IsInExec(pid_t tid) {
  return ActivityOf(tid) == Activity::kExecutes;
}

bool AwaitNoExec(const RemoteProcess& process) {
  if (MayTraceExecs(process.pid()))
    return true;
  std::vector<pid_t> threads = process.Threads();
  threads.resize(std::min(threads.size(), kMaxThreads));
  const uint64_t end_ns = MonotonicNs() + kQuietNs;
  while (true) {
    const Activity activity = ActivityOf(threads);
    if (activity != Activity::kRuns || MonotonicNs() >= end_ns)
      return activity != Activity::kExecutes;
    SleepNs(kLookAgainNs);
  }
}

}  // namespace heapprofd
