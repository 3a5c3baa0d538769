// aarch64: rt/resume_registers.h.
#pragma once

#include <cstdint>

namespace heapprofd::rt {

// The first 34 words are as the kernel has them in a signal frame.
struct ResumeRegisters {
  uint64_t x[31];
  uint64_t sp, pc, pstate;
  uint64_t sleeps_on;  // 1: by restart_syscall(2) at `pc`, which takes nothing from x0
};

}  // namespace heapprofd::rt
