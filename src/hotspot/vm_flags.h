// Flags of a running HotSpot virtual machine that can be set: those that make it leave a
// dump when it runs out of memory.
#pragma once

#include <string>

#include "base/status.h"
#include "hotspot/java_process.h"
#include "hotspot/machine_errand.h"

namespace heapprofd {

struct ArmedDump {
  std::string path;  // as the process sees it; empty: its working directory
  bool was_armed = false;
};

// From now on it leaves a dump. `path`: a file or a directory as the process sees it;
// empty: what it has been told before, or its working directory.
Result<ArmedDump> ArmOutOfMemoryDump(const JavaProcess& process,
                                     const std::string& path,
                                     const MachinePatience& patience);

// It leaves none, whoever has asked for it, its command line, too. Where it would go
// stays as it is.
Status DisarmOutOfMemoryDump(const JavaProcess& process, const MachinePatience& patience);

}  // namespace heapprofd
