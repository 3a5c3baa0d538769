// heap_profile java android: what hprof's views say about the heap of a program on a
// device.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/device/device_dump.h"
#include "cli/hprof/hprof_report.h"

namespace heapprofd {

// `keep`: a new file for the dump; empty: it is shown and nothing else.
Status ShowDeviceHeap(DeviceDumpRequest request,
                      const std::string& keep,
                      const HprofView& view);

}  // namespace heapprofd
