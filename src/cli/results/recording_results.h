// What a recording leaves beside its trace and the report: pprof files and the summary,
// made of the trace by the code that serves `show` and `traceconv profile`.
#pragma once

#include <cstdint>
#include <string>

namespace heapprofd {

struct RecordingResults {
  std::string trace_path = {};  // to be told
  std::string read_path = {};   // of the very file that was written
  std::string directory = {};   // for the pprof files
  uint32_t top = 10;            // rows of the summary
  bool with_summary = true;     // to standard error
  bool is_whole = true;         // the trace
};

// Prints to standard error; gives an exit code. Works in a process of its own: whatever
// goes wrong there does no harm to the recording, and its memory is not ours.
int LeaveResults(const RecordingResults& wanted);

}  // namespace heapprofd
