// x86-64: attach/registers.h.
#pragma once

#include <linux/audit.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

#include <cstddef>
#include <cstdint>

#include "rt/resume_registers.h"

namespace heapprofd {

inline bool GetRegisters(pid_t tid, user_regs_struct* registers) {
  return ptrace(PTRACE_GETREGS, tid, 0, registers) == 0;
}

inline bool SetRegisters(pid_t tid, const user_regs_struct& registers) {
  return ptrace(PTRACE_SETREGS, tid, 0, &registers) == 0;
}

inline uint64_t ProgramCounter(const user_regs_struct& registers) {
  return registers.rip;
}

inline void SetProgramCounter(uint64_t address, user_regs_struct* registers) {
  registers->rip = address;
}

inline uint64_t StackPointer(const user_regs_struct& registers) {
  return registers.rsp;
}

// Registers with which a thread begins at `address` what it was not about to do.
inline user_regs_struct LedTo(const user_regs_struct& registers,
                              uint64_t address,
                              uint64_t stack) {
  user_regs_struct led = registers;
  led.rip = address;
  led.rsp = stack;
  led.orig_rax = ~uint64_t{0};
  return led;
}

// How the kernel names our kind of system calls, and no other that the processor can make.
inline constexpr uint32_t kCallArchitecture = AUDIT_ARCH_X86_64;

// For a thread that has stopped at the begin of a call.
inline bool SetCallNumber(pid_t tid, long number) {
  return ptrace(PTRACE_POKEUSER, tid, offsetof(user_regs_struct, orig_rax), number) == 0;
}

// Of a stopped thread; 0: unknown.
inline uint64_t ThreadPointerOf(pid_t /*tid*/, const user_regs_struct& registers) {
  return registers.fs_base;
}

inline rt::ResumeRegisters ToResumeRegisters(const user_regs_struct& registers) {
  return {.flags = registers.eflags,
          .r15 = registers.r15,
          .r14 = registers.r14,
          .r13 = registers.r13,
          .r12 = registers.r12,
          .bp = registers.rbp,
          .bx = registers.rbx,
          .r11 = registers.r11,
          .r10 = registers.r10,
          .r9 = registers.r9,
          .r8 = registers.r8,
          .ax = registers.rax,
          .cx = registers.rcx,
          .dx = registers.rdx,
          .si = registers.rsi,
          .di = registers.rdi,
          .sp = registers.rsp,
          .ip = registers.rip};
}

// What a system call clears of the registers of the thread that makes it: nothing that our
// code does not put back itself.
struct VectorState {};

inline bool ReadVectorState(pid_t /*tid*/, VectorState* /*state*/) {
  return true;
}

inline bool HasVectors(const VectorState& /*state*/) {
  return false;
}

inline bool WriteVectorState(pid_t /*tid*/, const VectorState& /*state*/) {
  return true;
}

// Of a perf event at one instruction, bytes.
inline constexpr uint64_t kBreakpointLength = sizeof(long);

// How a thread goes on from there to the next such event.
inline constexpr auto kFromBreakpoint = PTRACE_CONT;

}  // namespace heapprofd
