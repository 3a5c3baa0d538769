// The rules that every configuration obeys. Messages name the option and the field.
#include "base/utf8.h"
#include "config/recording_config.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxNames = 10'000;
constexpr size_t kMaxNameLength = 4096;

Status CheckTargets(const TargetRules& rules) {
  if (rules.no_startup && rules.no_running)
    return Invalid(
        "cannot use --no-running together with --no-startup (no_running, no_startup): no "
        "process could match; leave one out");
  if (rules.names.size() > kMaxNames || rules.pids.size() > kMaxNames)
    return Invalid("cannot use more than 10000 names or pids (process_cmdline, pid)");
  for (const std::string& name : rules.names) {
    if (name.empty() || name.size() > kMaxNameLength)
      return Invalid(
          "cannot use --name (process_cmdline): a name must have 1 to 4096 characters");
    if (const std::string text = ToUtf8(name); text != name)
      return Invalid("cannot use --name (process_cmdline) " + text +
                     ": it is not UTF-8, as names in a configuration are; put * in place "
                     "of what is not, or name the process by --pid");
  }
  for (const pid_t pid : rules.pids) {
    if (pid <= 0)
      return Invalid("cannot use --pid (pid): " + std::to_string(pid) +
                     " is no process id; it must be at least 1");
  }
  return {};
}

}  // namespace

Status CheckSessionConfig(const SessionConfig& config) {
  if (config.interval_bytes < 1 || config.interval_bytes > uint64_t{1} << 40)
    return Invalid(
        "cannot use --interval (sampling_interval_bytes) " +
        std::to_string(config.interval_bytes) +
        ": it must be a number of bytes from 1 to 1 TiB; 4096 is the default, 1 records "
        "everything");
  const uint64_t ring = config.ring_size_bytes;
  if (ring % 4096 != 0 || ring < kMinRingSize || ring > kMaxRingSize ||
      (ring & (ring - 1)) != 0)
    return Invalid("cannot use --shmem-size (shmem_size_bytes) " + std::to_string(ring) +
                   ": it must be a power of two from 8192 to 268435456 bytes; 8388608 is "
                   "the default");
  if (config.block_timeout_us > UINT32_MAX)
    return Invalid(
        "cannot use --block-client-timeout (block_client_timeout_us) " +
        std::to_string(config.block_timeout_us) +
        ": it must be a number of microseconds from 0 to 4294967295; 0 waits as long as "
        "the profiler moves");
  HPD_TRY(CheckHeapSelection(config.heaps));
  if (config.idle_allocations && !config.heaps.HasMalloc())
    return Invalid(
        "cannot use --idle-allocations (idle_allocations) without malloc's heap: where "
        "the blocks of other heaps lie is not known; add libc.malloc to --heaps");
  if (config.idle_allocations && config.dumps.at_max)
    return Invalid(
        "cannot use --idle-allocations together with --dump-at-max (idle_allocations, "
        "dump_at_max): nobody looks at memory when most is live; leave one out");
  return CheckTargets(config.targets);
}

Status CheckRecordingConfig(const RecordingConfig& config) {
  if (config.sessions.empty())
    return Invalid(
        "cannot record: the configuration has no data source \"android.heapprofd\" with "
        "a heapprofd_config; heap_profile --print-config shows one");
  for (const SessionConfig& session : config.sessions) {
    HPD_TRY(CheckSessionConfig(session));
    const TargetRules& rules = session.targets;
    if (!rules.all && rules.names.empty() && rules.pids.empty())
      return Invalid(
          "cannot record: neither --pid (pid) nor --name (process_cmdline) is given; "
          "name "
          "a process, or put -- and a program at the end");
  }
  return {};
}

}  // namespace heapprofd
