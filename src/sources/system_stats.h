// linux.sys_stats: counters of the whole machine at intervals, from /proc and /sys.
#pragma once

#include <array>
#include <memory>
#include <set>
#include <string_view>

#include "sources/data_source.h"

namespace heapprofd {

inline constexpr std::string_view kSystemStatsSource = "linux.sys_stats";
inline constexpr uint32_t kMinSystemStatsMs =
    10;  // a shorter period is this, as in Perfetto

// What of its configuration has an effect.
inline constexpr std::array<std::string_view, 10> kSystemStatsFields = {
    "meminfo_period_ms",  "meminfo_counters", "vmstat_period_ms",  "vmstat_counters",
    "stat_period_ms",     "stat_counters",    "cpufreq_period_ms", "buddyinfo_period_ms",
    "diskstat_period_ms", "psi_period_ms"};

// Periods in milliseconds; 0: not read. Counters by their numbers in Perfetto's enums;
// none: all.
struct SystemStatsOptions {
  uint32_t meminfo_ms = 0;
  uint32_t vmstat_ms = 0;
  uint32_t stat_ms = 0;
  uint32_t cpu_frequency_ms = 0;
  uint32_t buddyinfo_ms = 0;
  uint32_t disks_ms = 0;
  uint32_t pressure_ms = 0;
  std::set<int> meminfo_counters;
  std::set<int> vmstat_counters;
  std::set<int> stat_counters;
};

std::unique_ptr<DataSource> MakeSystemStats(SystemStatsOptions options);

}  // namespace heapprofd
