// Room on disk for the dumps of a recording that still runs. Names of functions are known
// at its end only, so that pprof files of earlier dumps can be written then; a recording
// over days with a dump a minute must not hold them in memory. The file has no name and
// vanishes with the process. Its bytes are written and read by this process alone.
#pragma once

#include <cstdint>
#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "profile/model.h"

namespace heapprofd {

class DumpSpool {
 public:
  // The file is made in `directory` when something is first kept.
  explicit DumpSpool(std::string directory) : directory_(std::move(directory)) {}

  // Gives the position under which Read finds the dump.
  Result<uint64_t> Append(const HeapDump& dump);

  // Without `threads`, for which pprof has no place.
  Result<HeapDump> Read(uint64_t position) const;

 private:
  Status Open();

  std::string directory_;
  ScopedFd fd_;
  uint64_t end_ = 0;
};

}  // namespace heapprofd
