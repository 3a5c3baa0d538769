// Processes that a program has started which heap_profile has started: as long as some
// are, or may yet be, recorded the recording goes on without the program.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "record/trace_recording.h"

namespace heapprofd {

class ProgramChildren {
 public:
  // Outlives it; its first session has the socket that they report to.
  explicit ProgramChildren(const TraceRecording* recording) : recording_(recording) {}

  // Whether there are some. Those that have not reported are looked for now and then.
  bool AreThere();

  // For people; `program` itself does not count, though its session may not have noticed
  // its end yet.
  size_t Count(pid_t program) const;

 private:
  size_t CountSilent() const;

  const TraceRecording* recording_;
  size_t silent_ = 0;               // when looked at last
  uint64_t silent_counted_ns_ = 0;  // which was then
};

}  // namespace heapprofd
