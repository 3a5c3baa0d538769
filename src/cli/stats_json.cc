#include "cli/stats_json.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/own_file.h"
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
    for (const AttachReport& report : session->attach_reports()) {
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
  BoundedBytes live;
  double live_variance = 0;
  BoundedBytes peak;  // the sum of all heaps' peaks, whenever each was
  size_t callsites = 0;
  double calls = 0;
  double bytes = 0;
  uint64_t unsampled_children = 0;
};

Totals SumOf(const TraceRecording& recording) {
  Totals totals;
  Quality& sum = totals.quality;
  for (const Target* target : recording.targets()) {
    const Quality& quality = target->quality();
    sum.samples += quality.samples;
    sum.walked_samples += quality.walked_samples;
    sum.copied_samples += quality.copied_samples;
    sum.checked_samples += quality.checked_samples;
    sum.agreed_samples += quality.agreed_samples;
    sum.settled_samples += quality.settled_samples;
    sum.settled_copies += quality.settled_copies;
    sum.lost_records += quality.lost_records;
    sum.lost_samples += quality.lost_samples;
    sum.truncated_stacks += quality.truncated_stacks;
    sum.unwind_errors += quality.unwind_errors;
    sum.unwind_time_us += quality.unwind_time_us;
    for (const HeapDump& dump : target->profile().heaps) {
      totals.callsites += dump.callsites.size();
      totals.calls += static_cast<double>(dump.exact_alloc_calls);
      totals.bytes += static_cast<double>(dump.exact_alloc_bytes);
      for (const auto& [callsite, its_totals] : dump.callsites)
        totals.live_variance += its_totals.live().bytes_variance;
      totals.live = SumOf(totals.live, LiveTotal(dump));
      totals.peak = SumOf(totals.peak, dump.peak_total);
    }
    const ForkedChildren& forked = target->profile().forked;
    totals.unsampled_children += forked.count;
    totals.calls += static_cast<double>(forked.alloc_calls);
    totals.bytes += static_cast<double>(forked.alloc_bytes);
  }
  return totals;
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
  const Totals totals = SumOf(recording);
  const Quality& sum = totals.quality;
  uint64_t unrecorded = 0;
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    for (const UnrecordedPrograms& programs : session->Unrecorded())
      unrecorded += programs.count;
  }
  const AttachReport stops = LongestStops(recording);
  rusage self{};
  getrusage(RUSAGE_SELF, &self);
  fprintf(file,
          "{\"version\": 1, \"processes\": %zu, \"unrecorded\": %llu, "
          "\"unsampled_children\": %llu, \"target_cpu_s\": "
          "%.6f, \"target_peak_rss_kb\": %ld, "
          "\"engine_cpu_s\": %.6f, "
          "\"engine_peak_rss_kb\": %ld, \"callsites\": %zu, \"settled_samples\": %llu, "
          "\"settled_copies\": %llu, \"samples\": %llu, \"walked\": %llu, \"copied\": "
          "%llu, "
          "\"checked\": %llu, \"agreed\": %llu, \"lost_records\": %llu, "
          "\"lost_samples\": %llu, "
          "\"truncated\": %llu, \"unwind_errors\": %llu, \"unwind_time_us\": %llu, "
          "\"live_bytes\": %.0f, \"live_bytes_stderr\": %.0f, "
          "\"live_bytes_low\": %.0f, \"live_bytes_high\": %.0f, "
          "\"peak_bytes\": %.0f, \"peak_bytes_low\": %.0f, \"peak_bytes_high\": %.0f, "
          "\"alloc_calls\": %.0f, "
          "\"alloc_bytes\": %.0f, \"attach_threads\": %zu, "
          "\"attach_one_thread_us\": %.1f, \"attach_all_threads_us\": %.1f, "
          "\"detach_all_threads_us\": %.1f}\n",
          recording.targets().size(), static_cast<unsigned long long>(unrecorded),
          static_cast<unsigned long long>(totals.unsampled_children), usage.cpu_seconds,
          usage.peak_rss_kib, CpuSeconds(self), self.ru_maxrss, totals.callsites,
          static_cast<unsigned long long>(sum.settled_samples),
          static_cast<unsigned long long>(sum.settled_copies),
          static_cast<unsigned long long>(sum.samples),
          static_cast<unsigned long long>(sum.walked_samples),
          static_cast<unsigned long long>(sum.copied_samples),
          static_cast<unsigned long long>(sum.checked_samples),
          static_cast<unsigned long long>(sum.agreed_samples),
          static_cast<unsigned long long>(sum.lost_records),
          static_cast<unsigned long long>(sum.lost_samples),
          static_cast<unsigned long long>(sum.truncated_stacks),
          static_cast<unsigned long long>(sum.unwind_errors),
          static_cast<unsigned long long>(sum.unwind_time_us), totals.live.bytes,
          std::sqrt(std::max(0.0, totals.live_variance)), totals.live.low,
          totals.live.high, totals.peak.bytes, totals.peak.low, totals.peak.high,
          totals.calls, totals.bytes, stops.threads,
          static_cast<double>(stops.one_thread_stopped_ns) / 1e3,
          static_cast<double>(stops.attach_stopped_ns) / 1e3,
          static_cast<double>(stops.detach_stopped_ns) / 1e3);
  return fclose(file) == 0 ? Status() : CannotWrite(path);
}

}  // namespace heapprofd
