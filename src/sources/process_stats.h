// linux.process_stats: names and parents of all processes, and their memory at intervals.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "sources/data_source.h"

namespace heapprofd {

inline constexpr std::string_view kProcessStatsSource = "linux.process_stats";
inline constexpr uint32_t kMinProcessStatsMs =
    100;  // a shorter period is this, as in Perfetto

// What of its configuration has an effect.
inline constexpr std::array<std::string_view, 5> kProcessStatsFields = {
    "scan_all_processes_on_start", "record_thread_names", "proc_stats_poll_ms",
    "record_process_age", "record_process_runtime"};

struct ProcessStatsOptions {
  bool scan_at_start = false;
  bool thread_names = false;
  bool age = false;
  bool runtime = false;
  uint32_t poll_ms = 0;  // 0: memory is not looked at
};

std::unique_ptr<DataSource> MakeProcessStats(const ProcessStatsOptions& options);

}  // namespace heapprofd
