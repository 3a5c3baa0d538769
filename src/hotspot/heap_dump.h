// Asks a running HotSpot virtual machine for a dump of its heap, and takes it through a
// pipe, so that it lies in memory, or in a file that was asked for, and nowhere else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "hotspot/java_process.h"

namespace heapprofd {

struct DumpRequest {
  bool with_garbage = false;  // without it a full garbage collection comes first
  uint64_t patience_ns = 0;   // without a byte
  // Now and then: how it goes, in one line.
  std::function<void(const std::string& text)> show = nullptr;
  int stop_fd = -1;  // readable: it is no longer wanted
};

struct TakenDump {
  uint64_t bytes = 0;
  double seconds = 0;  // that it took the virtual machine, as it says
};

// Writes the dump to the end of `output`, a file that has `room` bytes for it. The error
// of a dump that is not whole says so; the virtual machine goes on in any case.
Result<TakenDump> TakeHeapDump(const JavaProcess& process,
                               const DumpRequest& request,
                               int output,
                               uint64_t room);

// From now on it leaves a dump when it runs out of memory. `path`: a file or a directory
// as the process sees it; empty: what it has been told before, or its working directory.
// Gives that path; empty: its working directory.
Result<std::string> ArmOutOfMemoryDump(const JavaProcess& process,
                                       const std::string& path);

// It no longer does.
Status DisarmOutOfMemoryDump(const JavaProcess& process);

}  // namespace heapprofd
