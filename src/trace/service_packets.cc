#include "trace/service_packets.h"

#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include <protozero/pbf_writer.hpp>

#include "base/page_size.h"
#include "trace/fields.h"
#include "trace/limits.h"

namespace heapprofd {
namespace {

using ProcessField = field::ProcessTree::Process;

using protozero::pbf_writer;

constexpr uint32_t kBootTimeId = 6;

// Clock ids of Perfetto's ClockSnapshot with the kernel's.
constexpr std::array<std::pair<uint32_t, clockid_t>, 6> kClocks = {
    {{kBootTimeId, CLOCK_BOOTTIME},
     {2, CLOCK_REALTIME_COARSE},
     {4, CLOCK_MONOTONIC_COARSE},
     {1, CLOCK_REALTIME},
     {3, CLOCK_MONOTONIC},
     {5, CLOCK_MONOTONIC_RAW}}};

uint64_t NowNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t BootTimeNs() {
  return NowNs(CLOCK_BOOTTIME);
}

std::string ClockSnapshotMessage() {
  std::string message;
  pbf_writer snapshot(message);
  for (const auto& [id, clock] : kClocks) {
    pbf_writer entry(snapshot, field::ClockSnapshot::kClocks);
    entry.add_uint32(field::ClockSnapshot::Clock::kClockId, id);
    entry.add_uint64(field::ClockSnapshot::Clock::kTimestamp, NowNs(clock));
  }
  snapshot.add_enum(field::ClockSnapshot::kPrimaryTraceClock, kBootTimeId);
  return message;
}

std::string SystemInfoMessage() {
  std::string message;
  pbf_writer info(message);
  utsname names{};
  uname(&names);
  {
    pbf_writer utsname_writer(info, field::SystemInfo::kUtsname);
    utsname_writer.add_string(field::Utsname::kSysname, names.sysname);
    utsname_writer.add_string(field::Utsname::kVersion, names.version);
    utsname_writer.add_string(field::Utsname::kRelease, names.release);
    utsname_writer.add_string(field::Utsname::kMachine, names.machine);
  }
  info.add_int64(field::SystemInfo::kHz, sysconf(_SC_CLK_TCK));
  info.add_string(field::SystemInfo::kTracingServiceVersion, "heapprofd for Linux");
  info.add_uint32(field::SystemInfo::kPageSize, static_cast<uint32_t>(PageSize()));
  info.add_uint32(field::SystemInfo::kNumCpus,
                  static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  return message;
}

std::string TraceUuidMessage() {
  std::array<int64_t, 2> random{};
  static_cast<void>(getrandom(random.data(), sizeof(random), 0));
  std::string message;
  pbf_writer uuid(message);
  uuid.add_int64(field::TraceUuid::kMsb, random[0]);
  uuid.add_int64(field::TraceUuid::kLsb, random[1]);
  return message;
}

std::string ProcessMemoryMessage(const TargetProfile& profile) {
  const MemoryContext& memory = profile.memory;
  std::string message;
  pbf_writer stats(message);
  {
    pbf_writer entry(stats, field::ProcessStats::kProcesses);
    entry.add_int32(field::ProcessStats::Process::kPid, profile.process.pid);
    entry.add_uint64(field::ProcessStats::Process::kVmRssKb, memory.rss_kib);
    entry.add_uint64(field::ProcessStats::Process::kRssAnonKb, memory.anonymous_kib);
    entry.add_uint64(field::ProcessStats::Process::kVmSwapKb, memory.swap_kib);
    entry.add_uint64(field::ProcessStats::Process::kSmrRssKb, memory.rss_kib);
    entry.add_uint64(field::ProcessStats::Process::kSmrPssKb, memory.pss_kib);
  }
  stats.add_uint64(field::ProcessStats::kCollectionEndTimestamp, BootTimeNs());
  return message;
}

void AddProcess(pbf_writer& entry, const ProcessDescription& process) {
  entry.add_int32(ProcessField::kPid, process.pid);
  entry.add_int32(ProcessField::kPpid, process.parent_pid);
  size_t left = kMaxTextBytes;  // of the command line
  for (const std::string& argument : process.cmdline) {
    entry.add_string(ProcessField::kCmdline, argument.data(),
                     std::min(argument.size(), left));
    left -= std::min(argument.size() + 1, left);
    if (left == 0)
      break;
  }
  entry.add_int32(ProcessField::kUid, static_cast<int32_t>(process.uid));
}

std::vector<std::string> ProcessTreeMessages(
    std::span<const ProcessDescription> processes) {
  std::vector<std::string> messages(1);
  for (const ProcessDescription& process : processes) {
    if (messages.back().size() >= kPacketTarget)
      messages.emplace_back();
    pbf_writer tree(messages.back());
    pbf_writer entry(tree, field::ProcessTree::kProcesses);
    AddProcess(entry, process);
    entry.add_uint64(ProcessField::kProfilingStart, process.start_ns);
  }
  return messages;
}

}  // namespace heapprofd
