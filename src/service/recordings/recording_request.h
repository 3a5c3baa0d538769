// What a command asks for that wants a recording. It is our user's own, or root's: what
// it sends is only checked for what could make the service wait, or steer libraries of
// the process that finishes the recording.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "service/control_channel.h"
#include "trace/trace_file.h"

namespace heapprofd {

// What a recording's owner wants done at its end, and is told until then.
struct FinishRequest {
  ScopedFd directory;          // for pprof files; invalid: only the trace is wanted
  std::string directory_path;  // for messages
  std::string trace_path;      // for messages
  uint32_t top = 10;
  bool quiet = false;
  bool wants_status = false;             // while it runs
  bool wants_dumps = false;              // to know of each
  bool only_dumps = false;               // no names, no summary
  std::vector<std::string> environment;  // NAME=VALUE of the owner, for the finisher

  // The PATH among them; "": there is none.
  std::string SearchPath() const;
};

struct RecordingRequest {
  std::string trace_config;  // as it came, see ParseTraceConfig
  TraceFile trace;
  ScopedFd standard_error;
  FinishRequest finish;
};

// Of a kStart, whose descriptors it takes.
Result<RecordingRequest> TakeRequest(ControlMessage message);

}  // namespace heapprofd
