// What a recorder knows when all is over and no dump of a heap tells. It is written at
// the end of the trace, so that whoever reads that tells the same as the recorder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/symbolize_report.h"
#include "profile/unrecorded_programs.h"

namespace heapprofd {

// Functions of one file, or of memory without one, that have no name.
struct UnnamedModule {
  std::string path = {};      // empty: no file
  std::string build_id = {};  // raw bytes
  uint64_t unnamed_frames = 0;
  NoSymbolsReason reason = NoSymbolsReason::kNone;
  std::string error = {};             // for people, with the remedy
  std::vector<uint64_t> starts = {};  // of its mappings, as Mapping::start
  bool is_unmapped = false;           // also what lies in no mapping
};

// Of one program that a process has run.
struct ProcessEnd {
  int32_t pid = 0;
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC: start of profiling
  std::string executable = {};
  bool hooks_malloc = true;     // false: only heaps that the program reports can be seen
  bool has_own_malloc = false;  // in its executable, where it was not seen
  bool has_heaps = true;        // false: its dump stands for a heap that there is not
  std::vector<std::string> unrecorded_heaps = {};  // registered, but not selected
  std::vector<std::string> late_files = {};        // paths as the process sees them
  uint64_t rss_kib = 0;                            // as seen last; 0: never
  uint64_t anonymous_kib = 0;
  uint64_t swap_kib = 0;
  uint64_t rss_limit_kib = 0;        // never more, where it was not seen; 0: unknown
  double requested = 0;              // bytes live when its allocator was asked
  std::vector<double> history = {};  // live bytes over time, evenly spaced
  std::vector<UnnamedModule> unnamed = {};
};

struct RecordingEnd {
  double seconds = 0;       // length of the recording; 0: unknown
  int32_t program_pid = 0;  // that the user has started or named; 0: there is no such one
  std::vector<UnrecordedPrograms> unrecorded = {};
  std::vector<ProcessEnd> processes = {};  // all that reported
};

}  // namespace heapprofd
