// The picture at the end of a recording, for the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/heap_selection.h"
#include "profile/model.h"
#include "symbolize/symbolize_profile.h"

namespace heapprofd {

// One process of the recording with what the summary needs beside its profile.
struct ProcessResult {
  const TargetProfile* profile = nullptr;
  SymbolizeReport symbols;
  std::vector<double> history;  // live bytes over time, evenly spaced
  uint64_t resident_kib = 0;    // last seen, 0: unknown
};

struct SummaryOptions {
  HeapSelection heaps;
  size_t top = 10;
  double seconds = 0;                 // length of the recording
  bool use_unicode = true;            // sparkline and arrows
  std::vector<std::string> warnings;  // of the whole recording, one line each
  std::string trace_path;
  std::vector<std::string> pprof_paths;  // of the process shown first
  std::string output_directory;
};

// The process with the most memory first and in full, the others in a line each.
std::string FormatSummary(const std::vector<ProcessResult>& processes,
                          const SummaryOptions& options);

// What a reader must know before trusting the figures, one line each, with the remedy.
// Empty: nothing.
std::vector<std::string> QualityWarnings(const ProcessResult& process);

}  // namespace heapprofd
