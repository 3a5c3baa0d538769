// What becomes of a trace that was pulled from a device: names, readable Java methods and
// pprof files beside it, by the converter that was named or by ourselves.
#pragma once

#include <string>

#include "cli/record/output_directory.h"

namespace heapprofd {

struct DeviceFiles {
  const OutputDirectory& directory;  // holds raw-trace
  std::string converter = {};        // path of a traceconv; empty: built in
  bool annotate = true;              // kinds of Java frames in the pprof files
  bool quiet = false;
};

// Gives the exit code. The trace alone is a result, too: what could not be made of it is
// a note.
int ConvertDeviceTrace(const DeviceFiles& files);

}  // namespace heapprofd
