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

// How blocks of malloc became samples.
struct MallocSampling {
  uint64_t interval = 0;         // bytes; 0: the trace has nothing of malloc
  uint64_t unlisted_blocks = 0;  // live ones that it leaves out: there are too many
  bool lacks_records = false;    // some were lost
};

struct BufferSum {
  uint64_t buffers = 0;
  uint64_t bytes = 0;

  void Add(uint64_t more) {
    ++buffers;
    bytes += more;
  }
};

// Direct buffers that objects of one class hold.
struct BufferOwner {
  struct Stack {
    std::vector<std::string> functions;  // that allocated them, the innermost one first
    BufferSum sum;
  };

  std::string name;
  BufferSum sum;
  std::vector<Stack> stacks = {};  // largest first; without those that no sample has
};

// Those of all owners whose block is not among the samples.
struct UnsampledBuffers {
  BufferSum sum;
  MallocSampling sampling = {};
  double expected = 0;  // bytes, of all buffers: so much chance leaves out
  double variance = 0;
};

struct MachineFigures {
  std::string process = {};  // "process 12 (java)"
  ResidentMemory resident = {};
  MachineMemory memory = {};
  std::optional<MallocEstimate> malloc = {};
  std::vector<BufferOwner> owners = {};            // largest first
  std::optional<UnsampledBuffers> unsampled = {};  // nullopt: there are none
  bool use_unicode = true;
};

std::string FormatResidentTable(const MachineFigures& figures);

}  // namespace heapprofd
