#include "attach/interrupted_call.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "attach/remote_process.h"

namespace heapprofd {
namespace {

constexpr size_t kSyscallLength = 2;  // bytes of the instruction

// In-kernel results of an interrupted system call that the kernel acts upon when the
// thread goes on (linux/errno.h, not exported).
constexpr int64_t kRestartSys = -512;
constexpr int64_t kRestartNoIntr = -513;
constexpr int64_t kRestartNoHand = -514;
constexpr int64_t kRestartBlock = -516;

// Calls that end with EINTR after any stop, even if no signal is delivered: signal(7),
// and transfers on sockets with a time limit.
bool EndsWithEintr(int64_t number) {
  constexpr std::array kCalls = {
      SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_rt_sigtimedwait,
      SYS_semop,      SYS_semtimedop,  SYS_io_getevents, SYS_io_pgetevents,
      SYS_accept,     SYS_accept4,     SYS_connect,      SYS_recvfrom,
      SYS_recvmsg,    SYS_recvmmsg,    SYS_sendto,       SYS_sendmsg,
      SYS_sendmmsg,   SYS_sendfile,    SYS_splice,       SYS_read,
      SYS_readv,      SYS_write,       SYS_writev,       SYS_io_uring_enter,
      SYS_fallocate};
  return std::find(kCalls.begin(), kCalls.end(), number) != kCalls.end();
}

std::string StatusOf(pid_t tid) {
  return ReadProcFile(ProcPath(tid, "status"), 16384);
}

uint64_t SignalSet(const std::string& status, const char* name) {
  return strtoull(StatusField(status, name).c_str(), nullptr, 16);
}

// A traced thread is sent signals, too, that it ignores: those do not count.
bool IsHandlerDue(pid_t tid) {
  const std::string status = StatusOf(tid);
  const uint64_t pending = SignalSet(status, "SigPnd") | SignalSet(status, "ShdPnd");
  return (pending & ~SignalSet(status, "SigBlk") & SignalSet(status, "SigCgt")) != 0;
}

}  // namespace

std::optional<user_regs_struct> RestartedCall(pid_t tid,
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

bool IsCaught(pid_t tid, int signal) {
  return (SignalSet(StatusOf(tid), "SigCgt") >> (signal - 1) & 1) != 0;
}

user_regs_struct ResumedElsewhere(const user_regs_struct& registers) {
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

bool IsExecBegunAnew(const user_regs_struct& registers) {
  const auto call = static_cast<int64_t>(registers.orig_rax);
  return (call == SYS_execve || call == SYS_execveat) &&
         ResumedElsewhere(registers).rip != registers.rip;
}

}  // namespace heapprofd
