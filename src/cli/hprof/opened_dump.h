// A heap dump that was opened to be examined, and what a user should know about how that
// went.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "hprof/census.h"
#include "hprof/dump_file.h"
#include "hprof/mapped_input.h"

namespace heapprofd {

struct OpenedDump {
  std::string path;
  hprof::MappedInput input;
  hprof::DumpFile file;
  const hprof::HeapDump* dump;
  std::vector<std::string> notes;
  bool is_damaged = false;
};

// `number`: of several in one file, from 1; 0: the last one.
Result<OpenedDump> OpenDump(const std::string& path, uint64_t number);

// Of bytes that are there already; `path` is what they are called.
Result<OpenedDump> OpenDump(hprof::MappedInput input,
                            const std::string& path,
                            uint64_t number);

// What a walk could not read becomes notes.
void AddDamage(const hprof::HeapCensus& census, OpenedDump* opened);

}  // namespace heapprofd
