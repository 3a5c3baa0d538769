// The trace configuration by which Perfetto on a device writes graphs of the heaps of
// Java programs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace heapprofd {

struct JavaHprofOptions {
  std::vector<pid_t> pids;
  std::vector<std::string> names;
  uint32_t dump_interval_ms = 0;  // 0: one dump
  bool with_smaps = false;        // what the kernel tells of the programs' memory
  bool with_packages = true;      // the packages' versions
  bool stops_when_done = true;    // devices before Android 12 end after a fixed time
};

// As text.
std::string PrintJavaHprofConfig(const JavaHprofOptions& options);

}  // namespace heapprofd
