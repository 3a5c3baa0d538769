// Symbolization of imported traces with the files of this machine and those that
// PERFETTO_BINARY_PATH names.
#pragma once

#include <string>
#include <vector>

#include "profile/code_table.h"
#include "profile/model.h"
#include "symbolize/symbolize_profile.h"
#include "tables/trace_builder.h"

namespace heapprofd {

// The frames of a trace that have a build id and no symbols yet, and their mappings.
// Frames that differ only in the process have one entry.
struct UnnamedCode {
  std::vector<Mapping> mappings;
  std::vector<Frame> frames;

  CodeTable table() { return {.mappings = mappings, .frames = frames}; }
};

UnnamedCode FramesToSymbolize(const ImportedTrace& trace);

// Puts the lines of `code`, which FramesToSymbolize made, to the frames of the trace.
void ApplySymbols(const UnnamedCode& code, TraceBuilder& builder);

struct SymbolizeSummary {
  uint64_t frames = 0;
  uint64_t unnamed_frames = 0;
  std::vector<std::string> messages;  // one per module that stayed without all its names
};

SymbolizeSummary Summarize(const SymbolizeReport& report);

}  // namespace heapprofd
