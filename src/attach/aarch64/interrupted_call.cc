// aarch64: when a thread stops, the kernel has prepared already what begins anew: x0 is the
// first argument again, pc is at the svc. Of a call that has ended with EINTR x0 is lost:
// what it was is known from before the stop.
#include "attach/thread/interrupted_call.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>

#include "attach/registers.h"
#include "attach/thread/signal_sets.h"
#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

constexpr size_t kSvcLength = 4;  // bytes of the instruction

// Whether the thread was stopped out of the very call that it was seen in.
bool IsSameCall(const WaitingCall& call, const user_regs_struct& registers) {
  return call.number >= 0 && registers.regs[8] == static_cast<uint64_t>(call.number) &&
         registers.sp == call.stack && registers.regs[1] == call.arguments[1] &&
         registers.regs[2] == call.arguments[2] &&
         registers.regs[3] == call.arguments[3] &&
         registers.regs[4] == call.arguments[4] && registers.regs[5] == call.arguments[5];
}

// Calls for a time that begins with them: they go on by restart_syscall(2), which knows
// what is left of it. The kernel has a thread make that call only where it has stopped it.
bool IsForATime(const WaitingCall& call) {
  constexpr uint64_t kFlags = FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
  switch (call.number) {
    case SYS_nanosleep:
      return true;
    case SYS_clock_nanosleep:
      return (call.arguments[1] & TIMER_ABSTIME) == 0;
    case SYS_futex:
      return (call.arguments[1] & ~kFlags) == FUTEX_WAIT && call.arguments[3] != 0;
    default:
      return false;
  }
}

// "NUMBER 0xARGUMENT... 0xSP 0xPC" of one that waits, "running" or "-1 0xSP 0xPC" else.
WaitingCall ParseWaitingCall(const std::string& text) {
  WaitingCall call;
  const char* at = text.c_str();
  char* end = nullptr;
  const long number = strtol(at, &end, 10);
  if (end == at || number < 0)
    return call;
  for (uint64_t& argument : call.arguments)
    argument = strtoull(end, &end, 16);
  call.stack = strtoull(end, &end, 16);
  call.code = strtoull(end, &end, 16);
  call.number = number;
  return call;
}

}  // namespace

// A thread that we have just let go is on its way into the call that it was seen in before.
WaitingCall WaitingCallOf(pid_t tid) {
  constexpr size_t kMaxThreads = 65'536;
  thread_local std::map<pid_t, WaitingCall> calls;  // the last of each
  const WaitingCall call = ParseWaitingCall(ReadProcFile(ProcPath(tid, "syscall"), 256));
  if (calls.size() >= kMaxThreads)
    calls.clear();
  if (call.number >= 0)
    calls[tid] = call;
  const auto known = calls.find(tid);
  return known != calls.end() ? known->second : WaitingCall();
}

std::optional<user_regs_struct> RestartedCall(pid_t tid,
                                              const WaitingCall& call,
                                              const user_regs_struct& registers) {
  user_regs_struct restarted = registers;
  if (!IsSameCall(call, registers))
    return std::nullopt;
  if (registers.pc == call.code && static_cast<int64_t>(registers.regs[0]) == -EINTR &&
      EndsWithEintr(call.number)) {
    restarted.regs[0] = call.arguments[0];
    restarted.pc -= kSvcLength;
  } else if (registers.pc == call.code - kSvcLength && IsForATime(call)) {
    restarted.regs[8] = SYS_restart_syscall;
  } else {
    return std::nullopt;
  }
  return IsHandlerDue(tid) ? std::nullopt : std::make_optional(restarted);
}

// By restart_syscall(2) a sleep ends when it would have ended. rt_sigprocmask(2) comes before
// it then, which filters may punish (rt/aarch64/go_back.h). Of those that are under one, a
// sleep begins anew: too long, but none that nobody has interrupted ends too early, if it is
// known which call it was.
rt::ResumeRegisters ResumedElsewhere(const WaitingCall& call,
                                     const user_regs_struct& registers,
                                     bool is_filtered) {
  rt::ResumeRegisters resume = ToResumeRegisters(registers);
  const bool is_at_call = call.number >= 0 && registers.pc == call.code - kSvcLength;
  if (!is_at_call || registers.regs[8] != SYS_restart_syscall)
    return resume;
  if (!is_filtered)
    resume.sleeps_on = 1;
  else if (IsForATime(call))
    resume.x[8] = static_cast<uint64_t>(call.number);
  return resume;
}

// x0 is what execve(2) has returned, or its first argument again: a pointer, or for
// execveat(2) a descriptor.
bool IsExecBegunAnew(const user_regs_struct& registers) {
  const auto first = static_cast<int64_t>(registers.regs[0]);
  const bool is_error = first < 0 && first >= -4095;
  return registers.regs[8] == SYS_execve
             ? !is_error
             : registers.regs[8] == SYS_execveat && (!is_error || first == AT_FDCWD);
}

}  // namespace heapprofd
