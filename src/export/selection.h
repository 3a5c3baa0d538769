// Which dumps of a trace are to be converted, and what all profiles made of a trace say
// about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/pprof_message.h"
#include "tables/imported_trace.h"

namespace heapprofd {

struct PprofSelection {
  std::optional<int64_t> pid;       // only this process
  std::vector<int64_t> timestamps;  // only dumps of these times (trace clock); empty: all
  bool annotate = true;             // kinds of Java frames in their names: "a.b.c [jit]"
};

bool IsSelected(const ImportedTrace& trace,
                const PprofSelection& selection,
                uint32_t upid,
                int64_t ts);

// Process and time of each dump there is.
using DumpTimesByPid = std::vector<std::pair<int64_t, int64_t>>;

// Why none of these dumps is selected, and which could be; empty: one is.
std::string ReasonFromSelection(const DumpTimesByPid& dumps,
                                const PprofSelection& selection);

// Wall-clock time and command line.
PprofMessage::Header HeaderAt(const ImportedTrace& trace, int64_t ts, uint32_t upid);

}  // namespace heapprofd
