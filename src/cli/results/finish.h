// What a recording leaves behind: names for its frames, the rest of the trace, pprof
// files and the summary.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "cli/record/live_view.h"
#include "cli/record/status_line.h"
#include "record/trace_recording.h"
#include "symbolize/symbolize_profile.h"

namespace heapprofd {

struct FinishOptions {
  std::string directory = {};   // for pprof files; empty: only the trace is wanted
  std::string trace_path = {};  // for the summary
  uint32_t top = 10;
  bool quiet = false;
  bool only_dumps = false;  // names are looked up by somebody else, nothing is shown
  double seconds = 0;       // length of the recording
  pid_t program = 0;        // that was started for it; 0: none
  uint64_t program_peak_kib = 0;  // of its memory, or more: what it was started by counts
  std::string obstacle = {};      // why nothing could be recorded, when that is known
  SymbolizeOptions symbols = {};
  StatusLine* status_line = nullptr;    // for work that takes long; nullptr: nobody looks
  std::function<void()> on_trace = {};  // called when all of the trace is written
};

// After TraceRecording::Stop. Prints to standard error; gives an exit code, kExitNothing
// where profiles were wanted and no process has samples. A signal that
// StopRequests() tells of ends the search for names, and nothing else: what was recorded
// is written.
int FinishRecording(TraceRecording& recording,
                    const LiveView& view,
                    const FinishOptions& options);

}  // namespace heapprofd
