// Where the resident memory of a virtual machine is, as the kernel sees it: each mapping
// belongs to the heap, to compiled code, to the stack of a thread, to a file, or to the
// rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hotspot/machine_memory.h"

namespace heapprofd {

struct ResidentMemory {
  uint64_t all = 0;  // bytes
  uint64_t heap = 0;
  uint64_t code = 0;
  uint64_t stacks = 0;  // of threads whose stack pointer is known
  uint64_t files = 0;
  uint64_t rest = 0;
  uint32_t stack_count = 0;
  uint32_t thread_count = 0;
};

// `smaps`: the text of /proc/PID/smaps. `stack_pointers`: of its threads; 0: not known,
// as of one that runs.
ResidentMemory ResidentMemoryIn(std::string_view smaps,
                                const MachineMemory& memory,
                                std::vector<uint64_t> stack_pointers);

// nullopt: the kernel does not show it to us, or not in time.
std::optional<ResidentMemory> ReadResidentMemory(pid_t pid, const MachineMemory& memory);

}  // namespace heapprofd
