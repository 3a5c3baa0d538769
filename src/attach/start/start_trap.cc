#include "attach/start/start_trap.h"

#include <signal.h>
#include <sys/ptrace.h>

#include <array>
#include <cstring>
#include <utility>

#include "attach/prologue.h"
#include "attach/refusals.h"
#include "attach/registers.h"
#include "attach/start/breakpoint.h"
#include "attach/thread/thread_states.h"

#if defined(__x86_64__)
#include "attach/x86_64/call_trap.h"  // IWYU pragma: export
#elif defined(__aarch64__)
#include "attach/aarch64/call_trap.h"  // IWYU pragma: export
#endif

namespace heapprofd {
namespace {

class BreakpointTrap : public StartTrap {
 public:
  BreakpointTrap(uint64_t function, TracedThread* thread)
      : breakpoint_(*thread, function), thread_(*thread) {}

  bool is_set() const { return breakpoint_.is_set(); }

  Stop Look(int status) override {
    if (status >> 16 != 0)
      return Stop::kForeign;
    if (IsStep(WSTOPSIG(status)))
      return Stop::kOnTheWay;
    return breakpoint_.IsHit(WSTOPSIG(status)) ? Stop::kReached : Stop::kForeign;
  }

  void GoOn(Stop stop) override {
    if (stop == Stop::kReached)
      ptrace(kFromBreakpoint, thread_.tid(), 0, 0);
    else
      thread_.Continue();
  }

  void Finish() override { thread_.NoteStopped(); }

 private:
  // A signal that would end the program, of a kernel that says more than others.
  bool IsStep(int signal) const {
    siginfo_t info{};
    return kFromBreakpoint == PTRACE_SINGLESTEP && signal == SIGTRAP &&
           ptrace(PTRACE_GETSIGINFO, thread_.tid(), 0, &info) == 0 &&
           info.si_code == TRAP_TRACE;
  }

  Breakpoint breakpoint_;
  TracedThread& thread_;
};

// The function calls getpid meanwhile, and the thread stops at each of its system calls. If
// we die, the program has a loader that asks for its process id when it loads a library.
class CallTrap : public StartTrap {
 public:
  using Code = std::array<uint8_t, kCallTrap.size()>;

  CallTrap(const RemoteProcess& process,
           uint64_t function,
           const Code& original,
           TracedThread* thread)
      : process_(process), function_(function), original_(original), thread_(*thread) {}

  ~CallTrap() override {
    if (!is_set_)
      return;
    if (!thread_.is_stopped()) {
      thread_.StopAtCalls(false);
      if (IsUninterruptible(thread_.tid())) {  // in the kernel: not where the trap is
        process_.WriteObject(function_, original_);
        return;
      }
      thread_.Interrupt();
      if (thread_.WaitForStop(MonotonicNs() + kStopNs) != TracedThread::Wait::kStopped)
        return;
    }
    Remove();
  }

  CallTrap(const CallTrap&) = delete;
  CallTrap& operator=(const CallTrap&) = delete;

  bool Set() {
    is_set_ = process_.WriteObject(function_, kCallTrap);
    if (is_set_)
      thread_.StopAtCalls(true);
    return is_set_;
  }

  // The call itself is not made: a filter of the program's might punish it.
  Stop Look(int status) override {
    if (!TracedThread::IsAtCall(status))
      return Stop::kForeign;
    user_regs_struct registers{};
    if (!GetRegisters(thread_.tid(), &registers) ||
        ProgramCounter(registers) != function_ + kBehindTrappedCall)
      return Stop::kOnTheWay;
    if (std::exchange(is_skipping_, !is_skipping_))
      return Stop::kReached;
    return Stop::kOnTheWay;
  }

  void GoOn(Stop stop) override {
    if (stop == Stop::kOnTheWay && is_skipping_)
      thread_.SkipCall();
    else
      thread_.Continue();
  }

  void Finish() override {
    thread_.NoteStopped();
    Remove();
  }

 private:
  // A thread that is in the function does it again from its begin, which is all of it.
  void Remove() {
    thread_.StopAtCalls(false);
    const uint64_t done = ProgramCounter(thread_.context().registers()) - function_;
    if (done < kCallTrap.size()) {
      SetProgramCounter(function_, &thread_.registers());
      if (!thread_.context().SetRegisters(thread_.registers()))
        return;  // it is gone
    }
    is_set_ = !process_.WriteObject(function_, original_);
  }

  const RemoteProcess& process_;
  const uint64_t function_;
  const Code original_;
  TracedThread& thread_;
  bool is_set_ = false;
  bool is_skipping_ = false;  // it has stopped at the begin of the call
};

Result<std::unique_ptr<StartTrap>> SetCall(const RemoteProcess& process,
                                           uint64_t function,
                                           TracedThread* thread) {
  std::array<uint8_t, 16> code{};  // functions begin at multiples of that, most often
  CallTrap::Code original{};
  if (!process.ReadObject(function, &code))
    return EndedAtStart(process.pid());
  if (!DoesNothing(code, original.size()))
    return CannotAttach(process.pid(),
                        "it cannot be stopped at its start: no breakpoint can be set, "
                        "and its loader has no room for what stands in for one; attach "
                        "with -p once it runs");
  memcpy(original.data(), code.data(), original.size());
  auto trap = std::make_unique<CallTrap>(process, function, original, thread);
  if (!trap->Set())
    return IsDead(process.pid(), thread->tid()) ? EndedAtStart(process.pid())
                                                : CannotWriteCode(process.pid());
  return std::unique_ptr<StartTrap>(std::move(trap));
}

}  // namespace

TrapKind BestTrap() {
  static const TrapKind kind =
      HaveBreakpoints() ? TrapKind::kBreakpoint : TrapKind::kCall;
  return kind;
}

Result<std::unique_ptr<StartTrap>> SetStartTrap(TrapKind kind,
                                                const RemoteProcess& process,
                                                uint64_t function,
                                                TracedThread* thread) {
  if (kind == TrapKind::kBreakpoint) {
    auto trap = std::make_unique<BreakpointTrap>(function, thread);
    if (trap->is_set())
      return std::unique_ptr<StartTrap>(std::move(trap));
  }
  return SetCall(process, function, thread);
}

}  // namespace heapprofd
