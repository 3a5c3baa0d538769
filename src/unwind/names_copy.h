// Copies of ELF files that hold what names are made of and nothing else: a file that stays
// open keeps its file system from being unmounted, and one that is closed may be gone
// before its names are looked up.
#pragma once

#include <cstdint>

#include "base/scoped_fd.h"

namespace heapprofd {

// True if the open file keeps nobody from unmounting a file system: it lies on the one
// that / of this process is on, or in memory.
bool IsOnRootMount(int fd);

struct NamesCopy {
  ScopedFd fd;         // in memory, sealed; invalid: there is none
  uint64_t bytes = 0;  // that it takes
};

// Returns a copy in which headers, notes, symbols and debug information are where they
// are in the file, and code and data are holes. Debug information is left out when all of
// it would take more than `max_bytes`; no copy is made when the rest does.
NamesCopy CopyForNames(int fd, uint64_t max_bytes);

}  // namespace heapprofd
