#include "attach/thread/interrupted_call.h"

#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "attach/registers.h"
#include "attach/thread/signal_sets.h"

namespace heapprofd {
namespace {

constexpr size_t kSyscallLength = 2;  // bytes of the instruction

// In-kernel results of an interrupted system call that the kernel acts upon when the
// thread goes on (linux/errno.h, not exported).
constexpr int64_t kRestartSys = -512;
constexpr int64_t kRestartNoIntr = -513;
constexpr int64_t kRestartNoHand = -514;
constexpr int64_t kRestartBlock = -516;

}  // namespace

// All registers that a call needs survive it.
WaitingCall WaitingCallOf(pid_t /*tid*/) {
  return {};
}

std::optional<user_regs_struct> RestartedCall(pid_t tid,
                                              const WaitingCall& /*call*/,
                                              const user_regs_struct& registers) {
  const auto number = static_cast<int64_t>(registers.orig_rax);
  if (static_cast<int64_t>(registers.rax) != -EINTR || number < 0 ||
      !EndsWithEintr(number) || IsHandlerDue(tid))
    return std::nullopt;
  user_regs_struct restarted = registers;
  restarted.rax = registers.orig_rax;
  restarted.rip -= kSyscallLength;
  restarted.orig_rax = ~uint64_t{0};
  return restarted;
}

namespace {

user_regs_struct BegunAnew(const user_regs_struct& registers) {
  user_regs_struct resume = registers;
  if (static_cast<int64_t>(resume.orig_rax) < 0)
    return resume;
  switch (static_cast<int64_t>(resume.rax)) {
    case kRestartSys:
    case kRestartNoIntr:
    case kRestartNoHand:
      resume.rax = resume.orig_rax;
      resume.rip -= kSyscallLength;
      break;
    case kRestartBlock:
      resume.rax = SYS_restart_syscall;
      resume.rip -= kSyscallLength;
      break;
    default:
      break;
  }
  return resume;
}

}  // namespace

rt::ResumeRegisters ResumedElsewhere(const WaitingCall& /*call*/,
                                     const user_regs_struct& registers,
                                     bool /*is_filtered*/) {
  return ToResumeRegisters(BegunAnew(registers));
}

bool IsExecBegunAnew(const user_regs_struct& registers) {
  const auto call = static_cast<int64_t>(registers.orig_rax);
  return (call == SYS_execve || call == SYS_execveat) &&
         BegunAnew(registers).rip != registers.rip;
}

}  // namespace heapprofd
