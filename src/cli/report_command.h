// The profile as one page of HTML: of `heap_profile report FILE...`, and the same beside
// the trace of a recording.
#pragma once

#include <string>

#include "base/files/file_place.h"
#include "base/status.h"
#include "query/trace_database.h"
#include "report/report_data.h"

namespace heapprofd {

// With what was wrong with the recordings, which is added to `options`; warnings of the
// database may be, too, as it decodes the trace. `page`: replaced when all of it is
// written.
Status WriteReport(TraceDatabase& database,
                   ReportOptions& options,
                   const FilePlace& page);

// Of the page of a recording.
FilePlace ReportBeside(const FilePlace& trace);

void PrintReportPath(const std::string& path);

void PrintNoReport(const std::string& cause,
                   bool has_whole_trace,
                   const std::string& trace_path);

// Makes the page beside the trace of a recording, in a process of its own: whatever goes
// wrong there, takes too long or is ended by Ctrl-C does no harm to the recording. Prints
// where the page is, or why there is none. Returns the exit code: that of a failure if the
// page could not be made, but not if Ctrl-C ended it.
int MakeReportBeside(const FilePlace& trace, bool has_whole_trace, bool quiet);

}  // namespace heapprofd
