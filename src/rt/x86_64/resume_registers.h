// x86-64: rt/resume_registers.h.
#pragma once

#include <cstdint>

namespace heapprofd::rt {

// In the order in which our code takes them from memory.
struct ResumeRegisters {
  uint64_t flags;
  uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, sp, ip;
};

}  // namespace heapprofd::rt
