// What a running virtual machine says of its own memory: of its heap, of what its classes
// take (metaspace), and of the code that it has compiled. Collectors say it in words of
// their own; what cannot be understood is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hotspot/java_process.h"
#include "hotspot/machine_errand.h"

namespace heapprofd {

struct ReservedRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct UsedMemory {
  uint64_t used = 0;  // bytes
  uint64_t committed = 0;
};

struct MachineMemory {
  std::optional<UsedMemory> heap;
  std::optional<UsedMemory> metaspace;
  std::optional<UsedMemory> code;
  std::vector<ReservedRange> heap_ranges;  // reserved ones
  std::vector<ReservedRange> code_ranges;
};

// From the answers to GC.heap_info and Compiler.codecache, one behind the other.
MachineMemory MachineMemoryIn(std::string_view answers);

// Asks it. It stands still for no longer than that takes. `stop_fd`: readable when it is
// no longer wanted.
Result<MachineMemory> AskForMemory(const JavaProcess& process,
                                   const MachinePatience& patience,
                                   int stop_fd);

}  // namespace heapprofd
