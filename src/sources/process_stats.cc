#include "sources/process_stats.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "base/clock.h"
#include "base/files/guarded_read.h"
#include "base/files/proc_files.h"
#include "engine/process_info.h"
#include "trace/fields.h"
#include "trace/limits.h"
#include "trace/service_packets.h"

namespace heapprofd {
namespace {

using ProcessField = field::ProcessTree::Process;
using StatsField = field::ProcessStats::Process;
using ThreadField = field::ProcessTree::Thread;

using protozero::pbf_writer;

constexpr size_t kMaxThreads = 1024;  // named of one process
constexpr size_t kMaxStatus = 8192;

// Numbers below a folder of /proc, as the kernel lists them.
std::vector<pid_t> NumbersIn(const std::string& path) {
  std::vector<pid_t> numbers;
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr)
    return numbers;
  while (const dirent* entry = readdir(directory)) {
    if (const int number = atoi(entry->d_name); number > 0)
      numbers.push_back(number);
  }
  closedir(directory);
  return numbers;
}

// Lines of /proc/PID/status and the fields of ProcessStats.Process that they become.
constexpr std::array<std::pair<std::string_view, uint32_t>, 8> kStatusFields = {
    {{"VmSize", StatsField::kVmSizeKb},
     {"VmRSS", StatsField::kVmRssKb},
     {"RssAnon", StatsField::kRssAnonKb},
     {"RssFile", StatsField::kRssFileKb},
     {"RssShmem", StatsField::kRssShmemKb},
     {"VmSwap", StatsField::kVmSwapKb},
     {"VmLck", StatsField::kVmLockedKb},
     {"VmHWM", StatsField::kVmHwmKb}}};

// Times of /proc/PID/stat, in clock ticks.
struct Ticks {
  uint64_t user = 0;
  uint64_t kernel = 0;
  uint64_t start = 0;  // since boot
};

// nullopt: it is gone, or the kernel does not show it in time.
std::optional<Ticks> ReadTicks(pid_t pid) {
  const std::string text = ReadMemoryFile(pid, "stat", kMaxStatText).text;
  const size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos)
    return std::nullopt;
  Ticks ticks;
  static_cast<void>(sscanf(  // NOLINT(cert-err34-c)
      text.c_str() + end_of_name,
      ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
      " %*d %*d %*d %*d %*d %*d %" SCNu64,
      &ticks.user, &ticks.kernel, &ticks.start));
  return ticks;
}

class ProcessStats : public DataSource {
 public:
  explicit ProcessStats(const ProcessStatsOptions& options) : options_(options) {}

  const char* name() const override { return kProcessStatsSource.data(); }

  Status Begin() override {
    next_ns_ = UINT64_MAX;
    if (options_.scan_at_start || options_.poll_ms != 0)
      next_ns_ = MonotonicNs();
    return {};
  }

  uint64_t next_ns() const override { return left_.empty() ? next_ns_ : 0; }

  // A scan takes as many calls as there are processes for; its numbers become packets as
  // they are read.
  Status Serve(const PacketSink& sink, uint64_t until_ns) override {
    if (left_.empty() && MonotonicNs() >= next_ns_)
      BeginScan();
    while (!left_.empty()) {
      Look(left_.back());
      left_.pop_back();
      if (left_.empty())
        std::erase_if(known_,
                      [this](const auto& entry) { return entry.second != scan_; });
      if (left_.empty() || tree_.size() + stats_.size() > kPacketTarget)
        HPD_TRY(Write(sink));
      if (MonotonicNs() >= until_ns)
        break;
    }
    return {};
  }

  Status End(const PacketSink& sink) override {
    left_.clear();
    return Write(sink);
  }

 private:
  void BeginScan() {
    const uint64_t period =
        options_.poll_ms == 0 ? 0
                              : std::max(options_.poll_ms, kMinProcessStatsMs) * kNsPerMs;
    next_ns_ = period == 0 ? UINT64_MAX : MonotonicNs() + period;
    left_ = NumbersIn("/proc");
    std::ranges::sort(left_, std::greater<>());
    ++scan_;
  }

  // A process that is new is described; every one has its memory read when that is asked
  // for.
  void Look(pid_t pid) {
    const auto [entry, is_new] = known_.try_emplace(pid, scan_);
    entry->second = scan_;
    if (is_new)
      Describe(pid);
    if (options_.poll_ms != 0)
      Measure(pid);
  }

  void Describe(pid_t pid) {
    const ProcessDescription process = DescribeProcess(pid);
    if (process.comm.empty())
      return;  // it is gone
    pbf_writer tree(tree_);
    {
      pbf_writer entry(tree, field::ProcessTree::kProcesses);
      AddProcess(entry, process);
      const std::optional<Ticks> ticks = options_.age ? ReadTicks(pid) : std::nullopt;
      if (ticks)
        entry.add_uint64(ProcessField::kProcessStartFromBoot, TicksToNs(ticks->start));
    }
    if (!options_.thread_names)
      return;
    std::vector<pid_t> threads = NumbersIn("/proc/" + std::to_string(pid) + "/task");
    threads.resize(std::min(threads.size(), kMaxThreads));
    for (const pid_t tid : threads) {
      pbf_writer entry(tree, field::ProcessTree::kThreads);
      entry.add_int32(ThreadField::kTid, tid);
      entry.add_string(ThreadField::kName, ThreadName(pid, static_cast<uint32_t>(tid)));
      entry.add_int32(ThreadField::kTgid, pid);
    }
  }

  void Measure(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid);
    const std::string status = ReadProcFile(folder + "/status", kMaxStatus);
    const std::string oom = ReadProcFile(folder + "/oom_score_adj", 16);
    pbf_writer stats(stats_);
    pbf_writer entry(stats, field::ProcessStats::kProcesses);
    entry.add_int32(StatsField::kPid, pid);
    for (const auto& [line, number] : kStatusFields) {
      // Threads of the kernel have none of them.
      const size_t at = status.find("\n" + std::string(line) + ":");
      if (at != std::string::npos)
        entry.add_uint64(number,
                         strtoull(status.c_str() + at + line.size() + 2, nullptr, 10));
    }
    if (!oom.empty())
      entry.add_int64(StatsField::kOomScoreAdj, strtoll(oom.c_str(), nullptr, 10));
    const std::optional<Ticks> ticks = options_.runtime ? ReadTicks(pid) : std::nullopt;
    if (ticks) {
      entry.add_uint64(StatsField::kRuntimeUserMode, TicksToNs(ticks->user));
      entry.add_uint64(StatsField::kRuntimeKernelMode, TicksToNs(ticks->kernel));
    }
  }

  Status Write(const PacketSink& sink) {
    const std::string tree = std::exchange(tree_, {});
    const std::string stats = std::exchange(stats_, {});
    if (!tree.empty())
      HPD_TRY(sink(field::TracePacket::kProcessTree, tree));
    return stats.empty() ? Status() : sink(field::TracePacket::kProcessStats, stats);
  }

  const ProcessStatsOptions options_;
  std::map<pid_t, uint64_t> known_;  // processes, with the scan that saw them last
  std::vector<pid_t> left_;          // of the scan under way
  uint64_t scan_ = 0;
  uint64_t next_ns_ = UINT64_MAX;
  std::string tree_;   // a ProcessTree that is being filled
  std::string stats_;  // a ProcessStats
};

}  // namespace

std::unique_ptr<DataSource> MakeProcessStats(const ProcessStatsOptions& options) {
  return std::make_unique<ProcessStats>(options);
}

}  // namespace heapprofd
