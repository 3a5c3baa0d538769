// What has become of a recording, for whoever has waited for its end.
#pragma once

namespace heapprofd {

struct RecordingOutcome {
  int exit_code = 0;             // of all that it was to leave
  bool has_whole_trace = false;  // whatever else could not be made of it
  bool is_awaited = true;        // false: the trace may still be written
};

}  // namespace heapprofd
