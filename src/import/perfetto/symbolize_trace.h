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

// Frames of a trace that have a build id, and their mappings. Frames that differ only in
// the process have one entry.
struct TraceCode {
  std::vector<Mapping> mappings;
  std::vector<Frame> frames;

  CodeTable table() { return {.mappings = mappings, .frames = frames}; }
};

struct SymbolizeSummary {
  uint64_t frames = 0;
  uint64_t unnamed_frames = 0;
  std::vector<std::string> messages;  // one per module that stayed without all its names
};

// What was found for the frames of a trace; those without lines got nothing.
struct FoundSymbols {
  TraceCode unnamed;         // they had no symbols
  TraceCode named;           // they had names alone, as stripped files tell them
  SymbolizeSummary summary;  // of the former
};

FoundSymbols FindSymbols(const ImportedTrace& trace, const SymbolizeOptions& options);

// Puts what was found in the trace to its frames.
void ApplySymbols(const FoundSymbols& found, TraceBuilder& builder);

}  // namespace heapprofd
