// What a recording leaves behind: names for its frames, the rest of the trace, figures for
// scripts, pprof files, the summary and the report.
#pragma once

#include <sys/types.h>

#include <string>

#include "cli/record/live_view.h"
#include "cli/record/output_directory.h"
#include "cli/record/status_line.h"
#include "cli/results/stats_json.h"
#include "record/recording_outcome.h"
#include "record/trace_recording.h"
#include "symbolize/symbolize_profile.h"

namespace heapprofd {

struct FinishOptions {
  const OutputDirectory* directory = nullptr;  // nullptr: only the trace is wanted
  std::string trace_path = {};                 // for the summary
  uint32_t top = 10;
  bool quiet = false;
  bool only_dumps = false;  // names are looked up by somebody else, nothing is shown
  pid_t program = 0;        // that was started for it; 0: none
  ProgramUsage usage = {};  // of that; its memory or more: what it was started by counts
  std::string obstacle = {};  // why nothing could be recorded, when that is known
  SymbolizeOptions symbols = {};
  StatusLine* status_line = nullptr;  // for work that takes long; nullptr: nobody looks
  bool with_report = false;           // report.html in the directory
};

// After TraceRecording::Stop. Prints to standard error; the exit code is kExitNothing
// where profiles were wanted and no process has samples. A signal that StopRequests()
// tells of ends the search for names; what was recorded is written. Behind that see
// LeaveResults.
RecordingOutcome FinishRecording(TraceRecording& recording,
                                 const LiveView& view,
                                 const FinishOptions& options);

}  // namespace heapprofd
