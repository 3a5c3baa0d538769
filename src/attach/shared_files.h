// The two memory files that an attached client has made, opened from outside.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/scoped_fd.h"
#include "unwind/proc_maps.h"
#include "wire/attached_client.h"

namespace heapprofd {

// One that cannot be opened, or is not what it should be, is invalid, and errno says why.
struct SharedFiles {
  ScopedFd engine;
  ScopedFd client;
};

// While the setup waits: by the descriptors of the thread that runs it.
SharedFiles FilesOfDescriptors(pid_t holder, const SetupResult& result);

// Afterwards: by where they are mapped. Only when CanOpenMappings.
SharedFiles MappedFiles(pid_t pid, const SetupResult& result);

// Whether the kernel lets us: root, mostly.
bool CanOpenMappings(pid_t pid, const std::vector<MapEntry>& maps);

// A limit on file sizes holds for memory files, too, and a process that runs into it gets
// a signal. `size`: bytes.
bool MayGrowFiles(pid_t pid, uint64_t size);

}  // namespace heapprofd
