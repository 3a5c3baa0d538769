// aarch64: rt/resume_registers.h.
#pragma once

#include <cstdint>

namespace heapprofd::rt {

// In the order in which the kernel has them in a signal frame.
struct ResumeRegisters {
  uint64_t x[31];
  uint64_t sp, pc, pstate;
};

}  // namespace heapprofd::rt
