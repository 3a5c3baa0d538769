// linux.ftrace: events of the kernel, through an instance of tracefs of our own, so that
// whoever else traces the kernel is not disturbed. Only root may.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "config.pb.h"
#include "sources/data_source.h"

namespace heapprofd {

inline constexpr std::string_view kFtraceSource = "linux.ftrace";

// What of its configuration has an effect.
inline constexpr std::array<std::string_view, 3> kFtraceFields = {
    "ftrace_events", "buffer_size_kb", "drain_period_ms"};

std::unique_ptr<DataSource> MakeFtrace(const perfetto::protos::FtraceConfig& config);

}  // namespace heapprofd
