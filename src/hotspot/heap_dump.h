// Asks a running HotSpot virtual machine for a dump of its heap, and takes it through a
// pipe, so that it lies in memory, or in a file that was asked for, and nowhere else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "hotspot/java_process.h"
#include "hotspot/machine_errand.h"

namespace heapprofd {

struct DumpRequest {
  bool with_garbage = false;  // without it a full garbage collection comes first
  MachinePatience patience = {};
  const char* room_advice = "";  // of a dump that does not fit: ends a message
  // Now and then: how it goes, in one line.
  std::function<void(const std::string& text)> show = nullptr;
  int stop_fd = -1;  // readable: it is no longer wanted
};

struct TakenDump {
  uint64_t bytes = 0;
  double seconds = 0;  // that it took the virtual machine, as it says
  std::string left;    // what could not be removed, and why; empty: nothing
};

// Writes the dump to the end of `output`, a file that has `room` bytes for it. The error
// of a dump that is not whole says so; the virtual machine goes on in any case.
Result<TakenDump> TakeHeapDump(const JavaProcess& process,
                               const DumpRequest& request,
                               int output,
                               uint64_t room);

}  // namespace heapprofd
