// What heap_profile hprof says about a heap: for people and, as JSON, for programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hprof/dump_file.h"
#include "hprof/mapped_input.h"

namespace heapprofd {

struct HprofView {
  bool json = false;
  bool retained = false;  // histogram: with retained sizes
  uint64_t top = 20;      // rows; 0: all
};

// A dump that was opened, and what a user should know about how that went.
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

// Of a descriptor that has a whole dump.
Result<OpenedDump> OpenDump(hprof::MappedInput input,
                            const std::string& path,
                            uint64_t number);

// Each prints to standard output, and adds to the notes what could not be read.
Status PrintHistogram(OpenedDump& opened, const HprofView& view);

// What the object retains, level by level; all of the heap when `object` is empty.
Status PrintDominators(OpenedDump& opened,
                       const HprofView& view,
                       const std::string& object);

// `target`: an address, or a class, whose object that retains most is meant.
Status PrintPath(OpenedDump& opened, const HprofView& view, const std::string& target);

}  // namespace heapprofd
