// What the page of a file says before its figures: the same words as the terminal's, of
// every process.
#pragma once

#include "report/report_data.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// Adds to what reading the files has told (ReportOptions::warnings) what was wrong with
// the recordings in them. The trace is decoded.
void TellOfRecordings(const ImportedTrace& trace, ReportOptions* options);

}  // namespace heapprofd
