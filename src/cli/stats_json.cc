#include "cli/stats_json.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace heapprofd {
namespace {

double CpuSeconds(const rusage& usage) {
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

}  // namespace

void WriteStatsJson(const Session& session, const Recording& recording) {
  const char* path = getenv("HEAPPROFD_STATS_JSON");
  FILE* file = path != nullptr ? fopen(path, "we") : nullptr;
  if (file == nullptr)
    return;
  Quality sum;
  Estimate live;
  double calls = 0;
  double bytes = 0;
  for (const std::unique_ptr<Target>& target : session.targets()) {
    const Quality& quality = target->quality();
    sum.samples += quality.samples;
    sum.walked_samples += quality.walked_samples;
    sum.copied_samples += quality.copied_samples;
    sum.checked_samples += quality.checked_samples;
    sum.agreed_samples += quality.agreed_samples;
    sum.lost_records += quality.lost_records;
    sum.lost_samples += quality.lost_samples;
    sum.truncated_stacks += quality.truncated_stacks;
    sum.unwind_errors += quality.unwind_errors;
    sum.unwind_time_us += quality.unwind_time_us;
    for (const HeapDump& dump : target->profile().heaps) {
      calls += static_cast<double>(dump.exact_alloc_calls);
      bytes += static_cast<double>(dump.exact_alloc_bytes);
      for (const auto& [callsite, totals] : dump.callsites)
        live += totals.live();
    }
  }
  AttachReport attach;  // the longest of all
  for (const AttachReport& report : session.attach_reports()) {
    attach.threads = std::max(attach.threads, report.threads);
    attach.one_thread_stopped_ns =
        std::max(attach.one_thread_stopped_ns, report.one_thread_stopped_ns);
    attach.attach_stopped_ns =
        std::max(attach.attach_stopped_ns, report.attach_stopped_ns);
    attach.detach_stopped_ns =
        std::max(attach.detach_stopped_ns, report.detach_stopped_ns);
  }
  rusage self{};
  getrusage(RUSAGE_SELF, &self);
  fprintf(file,
          "{\"version\": 1, \"processes\": %zu, \"target_cpu_s\": %.6f, "
          "\"engine_cpu_s\": %.6f, "
          "\"engine_peak_rss_kb\": %ld, \"samples\": %llu, \"walked\": %llu, \"copied\": "
          "%llu, "
          "\"checked\": %llu, \"agreed\": %llu, \"lost_records\": %llu, "
          "\"lost_samples\": %llu, "
          "\"truncated\": %llu, \"unwind_errors\": %llu, \"unwind_time_us\": %llu, "
          "\"live_bytes\": %.0f, \"live_bytes_stderr\": %.0f, \"alloc_calls\": %.0f, "
          "\"alloc_bytes\": %.0f, \"attach_threads\": %zu, "
          "\"attach_one_thread_us\": %.1f, \"attach_all_threads_us\": %.1f, "
          "\"detach_all_threads_us\": %.1f}\n",
          session.targets().size(), recording.program_cpu_seconds(), CpuSeconds(self),
          self.ru_maxrss, static_cast<unsigned long long>(sum.samples),
          static_cast<unsigned long long>(sum.walked_samples),
          static_cast<unsigned long long>(sum.copied_samples),
          static_cast<unsigned long long>(sum.checked_samples),
          static_cast<unsigned long long>(sum.agreed_samples),
          static_cast<unsigned long long>(sum.lost_records),
          static_cast<unsigned long long>(sum.lost_samples),
          static_cast<unsigned long long>(sum.truncated_stacks),
          static_cast<unsigned long long>(sum.unwind_errors),
          static_cast<unsigned long long>(sum.unwind_time_us), live.bytes,
          std::sqrt(live.bytes_variance), calls, bytes, attach.threads,
          static_cast<double>(attach.one_thread_stopped_ns) / 1e3,
          static_cast<double>(attach.attach_stopped_ns) / 1e3,
          static_cast<double>(attach.detach_stopped_ns) / 1e3);
  fclose(file);
}

}  // namespace heapprofd
