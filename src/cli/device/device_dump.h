// A heap dump of a program on an Android device, over adb: asked for as its version of
// Android wants it (am dumpheap since 3.0, SIGUSR1 before), waited for until it is whole,
// fetched, and removed there whatever happens.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hprof/mapped_input.h"

namespace heapprofd {

struct DeviceDumpRequest {
  std::string process;   // its name or number on the device
  std::string existing;  // a dump that is there, which stays; empty: the process is asked
  bool with_garbage = false;  // without it the garbage is collected first, if it can be
  uint64_t patience_ns = 0;   // without anything that comes
  // How it goes, in one line.
  std::function<void(const std::string& text)> show = nullptr;
};

struct DeviceDump {
  hprof::MappedInput input;
  std::vector<std::string> notes;  // what a user should know
};

// Ctrl-C and the like end it and not us: what was begun is cleaned up.
Result<DeviceDump> FetchDeviceDump(const DeviceDumpRequest& request);

}  // namespace heapprofd
