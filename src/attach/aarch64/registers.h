// aarch64: attach/registers.h. There is no PTRACE_GETREGS; registers come in sets.
#pragma once

#include <elf.h>
#include <linux/audit.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

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

// How the kernel names our kind of system calls, and no other that the processor can make.
inline constexpr uint32_t kCallArchitecture = AUDIT_ARCH_AARCH64;

// For a thread that has stopped at the begin of a call.
inline bool SetCallNumber(pid_t tid, long number) {
  int value = static_cast<int>(number);
  iovec set{.iov_base = &value, .iov_len = sizeof(value)};
  return ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &set) == 0;
}

// Of a stopped thread; 0: unknown.
inline uint64_t ThreadPointerOf(pid_t tid, const user_regs_struct& /*registers*/) {
  uint64_t pointer = 0;
  iovec set{.iov_base = &pointer, .iov_len = sizeof(pointer)};
  return ptrace(PTRACE_GETREGSET, tid, NT_ARM_TLS, &set) == 0 ? pointer : 0;
}

inline rt::ResumeRegisters ToResumeRegisters(const user_regs_struct& registers) {
  rt::ResumeRegisters resume{.x = {},
                             .sp = registers.sp,
                             .pc = registers.pc,
                             .pstate = registers.pstate,
                             .sleeps_on = 0};
  std::copy(std::begin(registers.regs), std::end(registers.regs), std::begin(resume.x));
  return resume;
}

// What a system call clears of the registers of the thread that makes it: what SVE and SME
// have beyond the vectors of 128 bits, when the thread was stopped among such
// instructions.
struct VectorState {
  long set = 0;  // of registers, by its ptrace name; 0: there is nothing to lose
  std::vector<std::byte> bytes;
};

// False: the thread is gone.
inline bool ReadVectorState(pid_t tid, VectorState* state) {
  constexpr long kSve = 0x405;        // NT_ARM_SVE
  constexpr long kStreaming = 0x40b;  // NT_ARM_SSVE: the same in SME's streaming mode
  constexpr uint16_t kIsInUse = 1;    // SVE_PT_REGS_SVE
  constexpr size_t kMaxSize = 65536;

  struct Header {  // of <asm/ptrace.h>, which cannot be included beside <sys/ptrace.h>
    uint32_t size;
    uint32_t max_size;
    uint16_t vector_length;
    uint16_t max_vector_length;
    uint16_t flags;
    uint16_t reserved;
  };

  for (const long number : {kSve, kStreaming}) {
    Header header{};
    iovec begin{.iov_base = &header, .iov_len = sizeof(header)};
    const bool is_there = ptrace(PTRACE_GETREGSET, tid, number, &begin) == 0;
    if (!is_there || (header.flags & kIsInUse) == 0)
      continue;  // the processor has no such registers, or they are not in use
    state->bytes.resize(std::min<size_t>(header.size, kMaxSize));
    iovec all{.iov_base = state->bytes.data(), .iov_len = state->bytes.size()};
    if (ptrace(PTRACE_GETREGSET, tid, number, &all) != 0 || all.iov_len != header.size)
      return false;
    state->set = number;
  }
  return true;
}

inline bool HasVectors(const VectorState& state) {
  return state.set != 0;
}

inline bool WriteVectorState(pid_t tid, const VectorState& state) {
  iovec all{.iov_base = const_cast<std::byte*>(state.bytes.data()),
            .iov_len = state.bytes.size()};
  return state.set == 0 || ptrace(PTRACE_SETREGSET, tid, state.set, &all) == 0;
}

// Of a perf event at one instruction, bytes.
inline constexpr uint64_t kBreakpointLength = 4;

// How a thread goes on from there to the next such event. The kernel switches all of its
// breakpoints off until it has made one step, which PTRACE_CONT keeps it from; it says
// nothing of that step.
inline constexpr auto kFromBreakpoint = PTRACE_SINGLESTEP;

}  // namespace heapprofd
