// Where the resident memory of a virtual machine is, as a table for the terminal. What is
// not known has no row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hotspot/machine_memory.h"
#include "hotspot/resident_memory.h"

namespace heapprofd {

// What malloc had given out at the end of the recording, with 95 % limits; bytes.
struct MallocEstimate {
  double live = 0;
  double low = 0;
  double high = 0;
};

// Direct buffers that objects of one class hold.
struct BufferOwner {
  std::string name;
  uint64_t buffers = 0;
  uint64_t bytes = 0;
};

struct MachineFigures {
  std::string process = {};  // "process 12 (java)"
  ResidentMemory resident = {};
  MachineMemory memory = {};
  std::optional<MallocEstimate> malloc = {};
  std::vector<BufferOwner> owners = {};  // largest first
};

std::string FormatResidentTable(const MachineFigures& figures);

}  // namespace heapprofd
