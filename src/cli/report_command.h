// `heap_profile report FILE...`: the profile as one page of HTML; and the same at the end
// of a recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cli/command_line.h"
#include "cli/run_command.h"

namespace heapprofd {

CommandLine ReportCommandLine();

// The page beside the trace of a recording. It is made in a process of its own, so that
// whatever goes wrong there, takes too long or is ended by Ctrl-C does no harm to the
// recording, nor to its exit code.
class RecordingReport {
 public:
  explicit RecordingReport(std::string trace_path) : trace_path_(std::move(trace_path)) {}

  // The trace is written. What else a recording leaves can be made meanwhile.
  void Begin();

  // Begins, if nobody has, and waits; says where the page is, or why there is none, and
  // whether the trace is complete.
  void Finish(bool is_complete, bool quiet);

 private:
  std::string PagePath() const;

  std::string trace_path_;
  uint64_t end_ns_ = 0;  // CLOCK_MONOTONIC, of our patience
  std::optional<Result<RunningCommand>> running_;
};

}  // namespace heapprofd
