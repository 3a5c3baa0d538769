// aarch64: attach/registers.h. There is no PTRACE_GETREGS; registers come in sets.
#pragma once

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "rt/resume_registers.h"

namespace heapprofd {

inline bool GetRegisters(pid_t tid, user_regs_struct* registers) {
  iovec set{.iov_base = registers, .iov_len = sizeof(*registers)};
  return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &set) == 0 &&
         set.iov_len == sizeof(*registers);
}

inline bool SetRegisters(pid_t tid, const user_regs_struct& registers) {
  iovec set{.iov_base = const_cast<user_regs_struct*>(&registers),
            .iov_len = sizeof(registers)};
  return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &set) == 0;
}

inline uint64_t ProgramCounter(const user_regs_struct& registers) {
  return registers.pc;
}

inline void SetProgramCounter(uint64_t address, user_regs_struct* registers) {
  registers->pc = address;
}

inline uint64_t StackPointer(const user_regs_struct& registers) {
  return registers.sp;
}

// Registers with which a thread begins at `address` what it was not about to do. Not as if
// an indirect branch had led there: guarded pages allow that at few instructions.
inline user_regs_struct LedTo(const user_regs_struct& registers,
                              uint64_t address,
                              uint64_t stack) {
  constexpr uint64_t kBranchType = 3 << 10;  // PSTATE.BTYPE
  user_regs_struct led = registers;
  led.pc = address;
  led.sp = stack;
  led.pstate &= ~kBranchType;
  return led;
}

// Of a stopped thread; 0: unknown.
inline uint64_t ThreadPointerOf(pid_t tid, const user_regs_struct& /*registers*/) {
  uint64_t pointer = 0;
  iovec set{.iov_base = &pointer, .iov_len = sizeof(pointer)};
  return ptrace(PTRACE_GETREGSET, tid, NT_ARM_TLS, &set) == 0 ? pointer : 0;
}

inline rt::ResumeRegisters ToResumeRegisters(const user_regs_struct& registers) {
  rt::ResumeRegisters resume{
      .x = {}, .sp = registers.sp, .pc = registers.pc, .pstate = registers.pstate};
  std::copy(std::begin(registers.regs), std::end(registers.regs), std::begin(resume.x));
  return resume;
}

// Of a perf event at one instruction, bytes.
inline constexpr uint64_t kBreakpointLength = 4;

}  // namespace heapprofd
