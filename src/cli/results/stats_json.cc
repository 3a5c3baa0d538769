#include "cli/results/stats_json.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "base/files/own_file.h"
#include "profile/block_shapes.h"
#include "profile/estimate.h"
#include "profile/figures.h"
#include "profile/limits.h"

namespace heapprofd {
namespace {

double CpuSeconds(const rusage& usage) {
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

Status CannotWrite(const char* path) {
  return Status::FromErrno(
      std::string("cannot write the figures to ") + path + ", named by " + kStatsVariable,
      errno);
}

// The longest stops of any of the processes that were attached to.
AttachReport LongestStops(const TraceRecording& recording) {
  AttachReport longest;
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    for (const AttachReport& report : session->attached().reports()) {
      longest.threads = std::max(longest.threads, report.threads);
      longest.one_thread_stopped_ns =
          std::max(longest.one_thread_stopped_ns, report.one_thread_stopped_ns);
      longest.attach_stopped_ns =
          std::max(longest.attach_stopped_ns, report.attach_stopped_ns);
      longest.detach_stopped_ns =
          std::max(longest.detach_stopped_ns, report.detach_stopped_ns);
    }
  }
  return longest;
}

// Over all processes.
struct Totals {
  Quality quality;
  LiveSum live;
  BoundedBytes peak;  // the sum of all heaps' peaks, whenever each was
  size_t callsites = 0;
  double calls = 0;
  double bytes = 0;
  Estimate temporary;
  bool is_idle_known = false;  // of any heap
  double idle = 0;             // bytes
  double idle_unseen = 0;
  uint64_t unsampled_children = 0;
};

Totals SumOf(const TraceRecording& recording) {
  Totals totals;
  for (const Target* target : recording.targets()) {
    totals.quality += target->profile().quality;
    for (const HeapDump& dump : target->profile().heaps) {
      totals.callsites += dump.callsites.size();
      totals.calls += static_cast<double>(dump.exact_alloc_calls);
      totals.bytes += static_cast<double>(dump.exact_alloc_bytes);
      totals.live.Add(dump);
      totals.peak = SumOf(totals.peak, dump.peak_total);
      totals.temporary += TemporaryBlocks(dump);
      totals.is_idle_known |= dump.idle.since_ns != 0;
      totals.idle_unseen += dump.idle.unseen_bytes;
      totals.idle += IdleTotal(dump);
    }
    const ForkedChildren& forked = target->profile().forked;
    totals.live.AddUnsampled(forked);
    totals.unsampled_children += forked.count;
    totals.calls += static_cast<double>(forked.alloc_calls);
    totals.bytes += static_cast<double>(forked.alloc_bytes);
  }
  return totals;
}

uint64_t UnrecordedIn(const TraceRecording& recording) {
  uint64_t unrecorded = 0;
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    for (const UnrecordedPrograms& programs : session->programs().Unrecorded())
      unrecorded += programs.count;
  }
  return unrecorded;
}

std::string JsonOf(const TraceRecording& recording, const ProgramUsage& usage) {
  const Totals totals = SumOf(recording);
  const BoundedBytes live = totals.live.Total();
  const AttachReport stops = LongestStops(recording);
  rusage self{};
  getrusage(RUSAGE_SELF, &self);
  nlohmann::ordered_json json = {
      {"version", 2},
      {"processes", recording.targets().size()},
      {"unrecorded", UnrecordedIn(recording)},
      {"unsampled_children", totals.unsampled_children},
      {"target_cpu_s", usage.cpu_seconds},
      {"target_peak_rss_kb", usage.peak_rss_kib},
      {"engine_cpu_s", CpuSeconds(self)},
      {"engine_peak_rss_kb", self.ru_maxrss},
      {"callsites", totals.callsites},
      {"live_bytes", RoundedFigure(live.bytes)},
      {"live_bytes_stderr", totals.live.standard_error()},
      {"live_bytes_low", RoundedFigure(live.low)},
      {"live_bytes_high", RoundedFigure(live.high)},
      {"peak_bytes", RoundedFigure(totals.peak.bytes)},
      {"peak_bytes_low", RoundedFigure(totals.peak.low)},
      {"peak_bytes_high", RoundedFigure(totals.peak.high)},
      {"alloc_calls", RoundedFigure(totals.calls)},
      {"alloc_bytes", RoundedFigure(totals.bytes)},
      {"temporary_calls", RoundedFigure(totals.temporary.count)},
      {"temporary_calls_stderr", std::sqrt(totals.temporary.count_variance)},
      {"attach_threads", stops.threads},
      {"attach_one_thread_us", static_cast<double>(stops.one_thread_stopped_ns) / 1e3},
      {"attach_all_threads_us", static_cast<double>(stops.attach_stopped_ns) / 1e3},
      {"detach_all_threads_us", static_cast<double>(stops.detach_stopped_ns) / 1e3}};
  if (totals.is_idle_known) {
    json["idle_bytes"] = RoundedFigure(totals.idle);
    json["idle_unseen_bytes"] = RoundedFigure(totals.idle_unseen);
  }
  for (const Figure& figure : kFigures)
    json[figure.name] = totals.quality.*figure.value;
  return json.dump() + "\n";
}

}  // namespace

Status WriteStatsJson(const TraceRecording& recording, const ProgramUsage& usage) {
  const char* path = getenv(kStatsVariable);
  if (path == nullptr || *path == 0)
    return {};
  Result<ScopedFd> fd = OpenForWriting(path);
  if (!fd.ok())
    return std::move(fd).status().WithContext(std::string("figures for ") +
                                              kStatsVariable);
  FILE* file = fdopen(fcntl(fd.value().get(), F_DUPFD_CLOEXEC, 0), "w");
  if (file == nullptr)
    return CannotWrite(path);
  fputs(JsonOf(recording, usage).c_str(), file);
  return fclose(file) == 0 ? Status() : CannotWrite(path);
}

}  // namespace heapprofd
