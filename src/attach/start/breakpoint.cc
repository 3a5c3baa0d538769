#include "attach/start/breakpoint.h"

#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/registers.h"

namespace heapprofd {
namespace {

// `period`: hits per notification; 0: they are only counted.
ScopedFd OpenEvent(pid_t tid, uint64_t address, uint64_t period) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = HW_BREAKPOINT_X;
  attributes.bp_addr = address;
  attributes.bp_len = kBreakpointLength;
  attributes.sample_period = period;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return ScopedFd(static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

__attribute__((noinline)) void Stopover() {
  __asm__ volatile("");
}

}  // namespace

Breakpoint::Breakpoint(const TracedThread& thread, uint64_t address)
    : tid_(thread.tid()) {
  const uint64_t blocked = thread.context().SignalMask().value_or(~uint64_t{0});
  for (const int signal : {SIGURG, SIGWINCH}) {
    if (signal_ == 0 && (blocked >> (signal - 1) & 1) == 0)
      signal_ = signal;
  }
  if (signal_ == 0)
    return;
  event_ = OpenEvent(tid_, address, /*period=*/1);
  const f_owner_ex owner{.type = F_OWNER_TID, .pid = tid_};
  if (event_.valid() && (fcntl(event_.get(), F_SETOWN_EX, &owner) != 0 ||
                         fcntl(event_.get(), F_SETSIG, signal_) != 0 ||
                         fcntl(event_.get(), F_SETFL, O_ASYNC) != 0))
    event_.reset();
}

bool Breakpoint::IsHit(int signal) const {
  siginfo_t info{};
  return signal == signal_ && ptrace(PTRACE_GETSIGINFO, tid_, 0, &info) == 0 &&
         info.si_code > 0 && info.si_fd == event_.get();
}

bool HaveBreakpoints() {
  const ScopedFd event =
      OpenEvent(/*tid=*/0, reinterpret_cast<uint64_t>(&Stopover), /*period=*/0);
  Stopover();
  uint64_t hits = 0;
  return event.valid() && read(event.get(), &hits, sizeof(hits)) == sizeof(hits) &&
         hits > 0;
}

}  // namespace heapprofd
