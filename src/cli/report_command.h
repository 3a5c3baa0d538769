// `heap_profile report FILE...`: the profile as one page of HTML; and the same at the end
// of a recording.
#pragma once

#include <string>

#include "cli/command_line.h"

namespace heapprofd {

CommandLine ReportCommandLine();

// Makes the page beside a trace, and says where it is, or why there is none, and whether
// the trace is complete. It is made in a process of its own, so that whatever goes wrong
// there, takes too long or is ended by Ctrl-C does no harm to the recording, nor to its
// exit code.
void ReportRecording(const std::string& trace_path, bool is_complete, bool quiet);

}  // namespace heapprofd
