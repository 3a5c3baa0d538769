#include "sources/system_stats.h"

#include <fcntl.h>
#include <google/protobuf/descriptor.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "base/clock.h"
#include "base/files/proc_files.h"
#include "base/scoped_fd.h"
#include "trace/fields.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

constexpr size_t kMaxFile = size_t{256} << 10;
constexpr int kMaxCpus = 4096;

// SysStatsConfig.StatCounters.
enum StatCounter : int {
  kCpuTimes = 1,
  kIrqCounts = 2,
  kSoftirqCounts = 3,
  kForkCount = 4
};

using SystemField = field::SysStats;

// "MEMINFO_ACTIVE_ANON" and "Active(anon)" are the same counter: only letters and digits
// count, in lower case.
std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (isalnum(static_cast<unsigned char>(c)) != 0)
      plain.push_back(static_cast<char>(tolower(static_cast<unsigned char>(c))));
  }
  return plain;
}

// The kernel's names of counters, with their numbers in the enum `name` of config.proto,
// whose values' names begin with `prefix` and an underscore.
std::map<std::string, int> CounterNumbers(const char* name, std::string_view prefix) {
  const google::protobuf::EnumDescriptor* type =
      google::protobuf::DescriptorPool::generated_pool()->FindEnumTypeByName(name);
  HPD_CHECK(type != nullptr);
  std::map<std::string, int> numbers;
  for (int i = 0; i < type->value_count(); ++i)
    numbers[Plain(type->value(i)->name().substr(prefix.size() + 1))] =
        type->value(i)->number();
  return numbers;
}

std::map<std::string, int> MeminfoNumbers() {
  std::map<std::string, int> numbers =
      CounterNumbers("perfetto.protos.MeminfoCounters", "MEMINFO");
  // Spelt otherwise by the kernel.
  numbers["sreclaimable"] = numbers.at("slabreclaimable");
  numbers["sunreclaim"] = numbers.at("slabunreclaimable");
  numbers["committedas"] = numbers.at("commitedas");
  return numbers;
}

// A counter's line is "Name: 123 kB" or "name 123". `wanted` empty: all that have a
// number.
void AddCounters(const std::string& text,
                 const std::map<std::string, int>& numbers,
                 const std::set<int>& wanted,
                 uint32_t field,
                 pbf_writer& stats) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    if (!(words >> name >> value))
      continue;
    const auto number = numbers.find(Plain(name));
    if (number == numbers.end() || (!wanted.empty() && !wanted.contains(number->second)))
      continue;
    pbf_writer entry(stats, field);
    entry.add_enum(SystemField::Counter::kKey, number->second);
    entry.add_uint64(SystemField::Counter::kValue, value);
  }
}

// "cpu0 user nice system idle iowait irq softirq steal", in clock ticks.
void AddCpu(const std::string& name, std::istringstream& words, pbf_writer& stats) {
  pbf_writer entry(stats, SystemField::kCpuStat);
  entry.add_uint32(SystemField::CpuTimes::kCpuId,
                   static_cast<uint32_t>(strtoul(name.c_str() + 3, nullptr, 10)));
  uint64_t ticks = 0;
  for (uint32_t field = SystemField::CpuTimes::kUserNs;
       field <= SystemField::CpuTimes::kStealNs && words >> ticks; ++field)
    entry.add_uint64(field, TicksToNs(ticks));
}

// "intr TOTAL COUNT...": counts by number, those that are zero left out.
void AddInterrupts(std::istringstream& words,
                   uint32_t total_field,
                   uint32_t field,
                   pbf_writer& stats) {
  uint64_t count = 0;
  if (!(words >> count))
    return;
  stats.add_uint64(total_field, count);
  for (int number = 0; words >> count; ++number) {
    if (count == 0)
      continue;
    pbf_writer entry(stats, field);
    entry.add_int32(SystemField::InterruptCount::kIrq, number);
    entry.add_uint64(SystemField::InterruptCount::kCount, count);
  }
}

void AddStat(const std::string& text, const std::set<int>& wanted, pbf_writer& stats) {
  const auto is_wanted = [&](int counter) {
    return wanted.empty() || wanted.contains(counter);
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name.starts_with("cpu") && name.size() > 3) {
      if (is_wanted(kCpuTimes))
        AddCpu(name, words, stats);
    } else if (name == "intr" && is_wanted(kIrqCounts)) {
      AddInterrupts(words, SystemField::kNumIrqTotal, SystemField::kNumIrq, stats);
    } else if (name == "softirq" && is_wanted(kSoftirqCounts)) {
      AddInterrupts(words, SystemField::kNumSoftirqTotal, SystemField::kNumSoftirq,
                    stats);
    } else if (name == "processes" && is_wanted(kForkCount)) {
      if (uint64_t forks = 0; words >> forks)
        stats.add_uint64(SystemField::kNumForks, forks);
    }
  }
}

// One number for each processor, in their order; 0 where the kernel tells none.
void AddCpuFrequencies(pbf_writer& stats) {
  const long cpus = std::min<long>(sysconf(_SC_NPROCESSORS_CONF), kMaxCpus);
  for (long cpu = 0; cpu < cpus; ++cpu) {
    const std::string khz = ReadProcFile(
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_cur_freq",
        32);
    stats.add_uint32(SystemField::kCpufreqKhz,
                     static_cast<uint32_t>(strtoul(khz.c_str(), nullptr, 10)));
  }
}

// "Node 0, zone Normal 1 2 3": free blocks by order.
void AddBuddyInfo(const std::string& text, pbf_writer& stats) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    std::string word;
    std::string node;
    std::string zone;
    if (!(words >> word >> node >> word >> zone))
      continue;
    pbf_writer entry(stats, SystemField::kBuddyInfo);
    entry.add_string(SystemField::BuddyInfo::kNode, node);
    entry.add_string(SystemField::BuddyInfo::kZone, zone);
    for (uint32_t pages = 0; words >> pages;)
      entry.add_uint32(SystemField::BuddyInfo::kOrderPages, pages);
  }
}

// Documentation/admin-guide/iostats.rst: after the device's numbers and name come reads,
// merged, sectors, ms; the same of writes; in flight, two times; the same of discards;
// flushes, ms.
void AddDisks(const std::string& text, pbf_writer& stats) {
  constexpr uint32_t kFields[] = {0, 0, 2, 3, 0, 0, 4, 5, 0, 0, 0, 0, 0, 6, 7, 8, 9};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    uint64_t number = 0;
    std::string name;
    if (!(words >> number >> number >> name))
      continue;
    pbf_writer entry(stats, SystemField::kDiskStat);
    entry.add_string(SystemField::DiskStat::kDeviceName, name);
    for (const uint32_t field : kFields) {
      if (!(words >> number))
        break;
      if (field != 0)
        entry.add_uint64(field, number);
    }
  }
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", in microseconds.
void AddPressure(const std::string& text, int some, pbf_writer& stats) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("total=");
    if (at == std::string::npos)
      continue;
    pbf_writer entry(stats, SystemField::kPsi);
    entry.add_enum(SystemField::PsiSample::kResource,
                   line.starts_with("some") ? some : some + 1);
    entry.add_uint64(SystemField::PsiSample::kTotalNs,
                     strtoull(line.c_str() + at + 6, nullptr, 10) * 1000);
  }
}

// A file, or a few, that are read every `period_ms`.
struct Reading {
  uint32_t period_ms;  // 0: not asked for
  void (*add)(const SystemStatsOptions& options, pbf_writer& stats);
  uint64_t next_ns = 0;
};

void AddMeminfo(const SystemStatsOptions& options, pbf_writer& stats) {
  static const std::map<std::string, int> numbers = MeminfoNumbers();
  AddCounters(ReadProcFile("/proc/meminfo", kMaxFile), numbers, options.meminfo_counters,
              SystemField::kMeminfo, stats);
}

void AddVmstat(const SystemStatsOptions& options, pbf_writer& stats) {
  static const std::map<std::string, int> numbers =
      CounterNumbers("perfetto.protos.VmstatCounters", "VMSTAT");
  AddCounters(ReadProcFile("/proc/vmstat", kMaxFile), numbers, options.vmstat_counters,
              SystemField::kVmstat, stats);
}

class SystemStats : public DataSource {
 public:
  explicit SystemStats(SystemStatsOptions options) : options_(std::move(options)) {}

  const char* name() const override { return kSystemStatsSource.data(); }

  Status Begin() override {
    const auto add = [this](uint32_t period_ms, decltype(Reading::add) function) {
      if (period_ms != 0)
        readings_.push_back({.period_ms = std::max(period_ms, kMinSystemStatsMs),
                             .add = function,
                             .next_ns = MonotonicNs()});
    };
    using Options = SystemStatsOptions;
    add(options_.meminfo_ms, AddMeminfo);
    add(options_.vmstat_ms, AddVmstat);
    add(options_.stat_ms, [](const Options& options, pbf_writer& stats) {
      AddStat(ReadProcFile("/proc/stat", kMaxFile), options.stat_counters, stats);
    });
    add(options_.cpu_frequency_ms,
        [](const Options&, pbf_writer& stats) { AddCpuFrequencies(stats); });
    add(options_.buddyinfo_ms, [](const Options&, pbf_writer& stats) {
      AddBuddyInfo(ReadProcFile("/proc/buddyinfo", kMaxFile), stats);
    });
    add(options_.disks_ms, [](const Options&, pbf_writer& stats) {
      AddDisks(ReadProcFile("/proc/diskstats", kMaxFile), stats);
    });
    if (options_.pressure_ms == 0)
      return {};
    const ScopedFd pressure(open("/proc/pressure/memory", O_RDONLY | O_CLOEXEC));
    if (!pressure.valid() && (errno == ENOENT || errno == EOPNOTSUPP))
      return Status(StatusCode::kUnavailable,
                    "cannot read /proc/pressure: the kernel keeps no such figures; start "
                    "it with psi=1, or leave out psi_period_ms");
    if (!pressure.valid())
      return Status::FromErrno("cannot read /proc/pressure", errno);
    add(options_.pressure_ms, [](const Options&, pbf_writer& stats) {
      AddPressure(ReadProcFile("/proc/pressure/cpu", kMaxFile), 1, stats);
      AddPressure(ReadProcFile("/proc/pressure/io", kMaxFile), 3, stats);
      AddPressure(ReadProcFile("/proc/pressure/memory", kMaxFile), 5, stats);
    });
    return {};
  }

  uint64_t next_ns() const override {
    uint64_t next = UINT64_MAX;
    for (const Reading& reading : readings_)
      next = std::min(next, reading.next_ns);
    return next;
  }

  Status Serve(const PacketSink& sink, uint64_t /*until_ns*/) override {
    std::string message;
    pbf_writer stats(message);
    for (Reading& reading : readings_) {
      const uint64_t now = MonotonicNs();
      if (now < reading.next_ns)
        continue;
      reading.add(options_, stats);
      reading.next_ns = now + reading.period_ms * kNsPerMs;
    }
    return message.empty() ? Status() : sink(field::TracePacket::kSysStats, message);
  }

  Status End(const PacketSink& /*sink*/) override {
    readings_.clear();
    return {};
  }

 private:
  const SystemStatsOptions options_;
  std::vector<Reading> readings_;
};

}  // namespace

std::unique_ptr<DataSource> MakeSystemStats(SystemStatsOptions options) {
  return std::make_unique<SystemStats>(std::move(options));
}

}  // namespace heapprofd
