// The picture at the end of a recording, for the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/heap_selection.h"
#include "profile/model.h"
#include "profile/symbolize_report.h"

namespace heapprofd {

// One process of the recording with what the summary needs beside its profile.
struct ProcessResult {
  const TargetProfile* profile = nullptr;
  SymbolizeReport symbols;
  std::vector<double> history;      // live bytes over time, evenly spaced
  uint64_t resident_kib = 0;        // last seen, 0: unknown
  uint64_t resident_limit_kib = 0;  // never more, where it was not seen; 0: unknown
  bool tells_end = true;            // false: of the end only the limits are known
};

struct SummaryOptions {
  HeapSelection heaps = {};
  uint64_t block_timeout_us = 0;  // as in SessionConfig
  size_t top = 10;
  double seconds = 0;        // length of the recording; 0: unknown
  size_t width = 0;          // of the terminal; 0: there is none
  bool use_unicode = true;   // sparkline and arrows
  bool dump_at_max = false;  // show the peak in any case
  std::string program = {};  // "g++ (pid 12)": what the user named, when another
                             // process had more memory
  std::string largest = {};  // the process that had more memory than the first
  std::vector<std::string> warnings = {};  // of the whole recording, one line each
};

// The first process in full, the others in a line each.
std::string FormatSummary(const std::vector<ProcessResult>& processes,
                          const SummaryOptions& options);

}  // namespace heapprofd
