// linux.ftrace: events of the kernel, through an instance of tracefs of our own, so that
// whoever else traces the kernel is not disturbed. Only root may.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sources/data_source.h"

namespace heapprofd {

inline constexpr std::string_view kFtraceSource = "linux.ftrace";
inline constexpr uint32_t kMinFtraceDrainMs = 10;  // a shorter period is this

// What of its configuration has an effect.
inline constexpr std::array<std::string_view, 3> kFtraceFields = {
    "ftrace_events", "buffer_size_kb", "drain_period_ms"};

struct FtraceOptions {
  std::vector<std::string> events;  // see TracefsInstance::Enable
  uint32_t buffer_kib = 0;          // for each processor; 0: the default
  uint32_t drain_ms = 0;            // 0: the default
};

std::unique_ptr<DataSource> MakeFtrace(FtraceOptions options);

}  // namespace heapprofd
