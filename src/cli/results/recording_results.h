// What a recording leaves beside its trace: pprof files, the summary and the report, made
// of the trace by the code that serves `show`, `traceconv profile` and `report`.
//
//   the trace --decoded once--> a process of its own --forked--> one for each
//
// Whatever goes wrong there does no harm to the recording, and its memory is not ours:
// each process may add half of what the machine has left to what it shares with the others,
// and is the first to be ended when memory runs out.
#pragma once

#include <cstdint>
#include <string>

#include "cli/record/output_directory.h"
#include "cli/record/status_line.h"
#include "trace/trace_file.h"

namespace heapprofd {

struct RecordingResults {
  std::string trace_path = {};                 // to be told
  const TraceFile* file = nullptr;             // that was written, or what stands for it
  const OutputDirectory* directory = nullptr;  // for files
  uint32_t top = 10;                           // rows of the summary
  bool with_summary = true;                    // to standard error
  bool with_report = false;
  bool is_whole = true;               // the trace
  StatusLine* status_line = nullptr;  // for work that takes long; nullptr: nobody looks
};

// Prints to standard error; gives an exit code: that of a failure if a file could not be
// made, the report too. Ctrl-C ends the report, which is no failure, SIGTERM, SIGHUP and SIGQUIT all that is not done yet: they are
// to be blocked, as SteeringSignals does.
int LeaveResults(const RecordingResults& wanted);

// Bytes for one process that makes them, beyond what is used already.
uint64_t MemoryForMore();

}  // namespace heapprofd
