// linux.sys_stats: counters of the whole machine at intervals, from /proc and /sys.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "config.pb.h"
#include "sources/data_source.h"

namespace heapprofd {

inline constexpr std::string_view kSystemStatsSource = "linux.sys_stats";

// What of its configuration has an effect.
inline constexpr std::array<std::string_view, 10> kSystemStatsFields = {
    "meminfo_period_ms",  "meminfo_counters", "vmstat_period_ms",  "vmstat_counters",
    "stat_period_ms",     "stat_counters",    "cpufreq_period_ms", "buddyinfo_period_ms",
    "diskstat_period_ms", "psi_period_ms"};

std::unique_ptr<DataSource> MakeSystemStats(
    const perfetto::protos::SysStatsConfig& config);

}  // namespace heapprofd
