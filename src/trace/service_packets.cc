#include "trace/service_packets.h"

#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"
#include "trace/limits.h"

namespace heapprofd {
namespace {

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
    pbf_writer entry(snapshot, 1);
    entry.add_uint32(1, id);
    entry.add_uint64(2, NowNs(clock));
  }
  snapshot.add_enum(2, kBootTimeId);
  return message;
}

std::string SystemInfoMessage() {
  std::string message;
  pbf_writer info(message);
  utsname names{};
  uname(&names);
  {
    pbf_writer utsname_writer(info, 1);
    utsname_writer.add_string(1, names.sysname);
    utsname_writer.add_string(2, names.version);
    utsname_writer.add_string(3, names.release);
    utsname_writer.add_string(4, names.machine);
  }
  info.add_int64(3, sysconf(_SC_CLK_TCK));
  info.add_string(4, "heapprofd for Linux");
  info.add_uint32(6, static_cast<uint32_t>(sysconf(_SC_PAGESIZE)));
  info.add_uint32(8, static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  return message;
}

std::string TraceUuidMessage() {
  std::array<int64_t, 2> random{};
  static_cast<void>(getrandom(random.data(), sizeof(random), 0));
  std::string message;
  pbf_writer uuid(message);
  uuid.add_int64(1, random[0]);
  uuid.add_int64(2, random[1]);
  return message;
}

std::string ProcessMemoryMessage(const TargetProfile& profile) {
  const MemoryContext& memory = profile.memory;
  std::string message;
  pbf_writer stats(message);
  {
    pbf_writer entry(stats, 1);
    entry.add_int32(1, profile.process.pid);
    entry.add_uint64(3, memory.rss_kib);
    entry.add_uint64(4, memory.anonymous_kib);
    entry.add_uint64(7, memory.swap_kib);
    entry.add_uint64(16, memory.rss_kib);
    entry.add_uint64(17, memory.pss_kib);
  }
  stats.add_uint64(2, BootTimeNs());
  return message;
}

void AddProcess(pbf_writer& entry, const ProcessDescription& process) {
  entry.add_int32(field::kProcessPid, process.pid);
  entry.add_int32(field::kProcessParent, process.parent_pid);
  size_t left = kMaxTextBytes;  // of the command line
  for (const std::string& argument : process.cmdline) {
    entry.add_string(field::kProcessCmdline, argument.data(),
                     std::min(argument.size(), left));
    left -= std::min(argument.size() + 1, left);
    if (left == 0)
      break;
  }
  entry.add_int32(field::kProcessUid, static_cast<int32_t>(process.uid));
}

std::vector<std::string> ProcessTreeMessages(
    std::span<const ProcessDescription> processes) {
  std::vector<std::string> messages(1);
  for (const ProcessDescription& process : processes) {
    if (messages.back().size() >= kPacketTarget)
      messages.emplace_back();
    pbf_writer tree(messages.back());
    pbf_writer entry(tree, 1);
    AddProcess(entry, process);
    entry.add_uint64(field::kProcessProfilingStart, process.start_ns);
  }
  return messages;
}

}  // namespace heapprofd
