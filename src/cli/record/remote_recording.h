// Recording processes that heap_profile has not started itself: asks a running heapprofd,
// or starts one that leaves when it has nothing left to do.
#pragma once

#include <optional>
#include <string>

#include "base/scoped_fd.h"
#include "cli/managed/dumps_meanwhile.h"
#include "cli/record/output_directory.h"
#include "config/recording_config.h"
#include "record/recording_outcome.h"

namespace heapprofd {

struct RemoteRequest {
  RecordingConfig config = {};
  ScopedFd trace = {};          // open for writing
  std::string trace_path = {};  // for messages
  // Its path is absolute; nullopt: only the trace is wanted.
  std::optional<OutputDirectory> directory = {};
  uint32_t top = 10;  // rows of the summary
  bool quiet = false;
  bool only_dumps = false;  // no names and no summary at the end
  bool may_start_service = true;
  // Written and closed once clients are served: a zero byte, or why they are not.
  int started_fd = -1;
  // Looked after as long as it is recorded; nullptr: there are none.
  DumpsMeanwhile* java_dumps = nullptr;
};

// Returns when the recording is over, or nobody wants to wait for that. Signals steer it:
// SIGINT, SIGTERM and SIGHUP end it, SIGUSR1 adds a dump.
RecordingOutcome RecordRemotely(const RemoteRequest& request);

// Labels a dump of everything that is recorded for this user; gives the exit code.
int MarkRecordings(const std::string& label);

}  // namespace heapprofd
