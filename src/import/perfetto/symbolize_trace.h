// Symbolization of imported traces with the files of this machine and those that
// PERFETTO_BINARY_PATH names.
#pragma once

#include <string>
#include <vector>

#include "profile/model.h"
#include "symbolize/symbolize_profile.h"
#include "tables/trace_builder.h"

namespace heapprofd {

// The frames of the trace that have a build id and no symbols yet, as a profile without
// callsites: what SymbolizeProfiles and the trace's ModuleSymbols work on. Frames that
// differ only in the process have one entry.
TargetProfile FramesToSymbolize(const ImportedTrace& trace);

// Puts the lines of `profile`, which FramesToSymbolize made, to the frames of the trace.
void ApplySymbols(const TargetProfile& profile, TraceBuilder& builder);

struct SymbolizeSummary {
  uint64_t frames = 0;
  uint64_t unnamed_frames = 0;
  std::vector<std::string> messages;  // one per module that stayed without all its names
};

SymbolizeSummary Summarize(const SymbolizeReport& report);

}  // namespace heapprofd
