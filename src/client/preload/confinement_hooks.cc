// prctl and syscall, interposed by LD_PRELOAD: the two ways to install a seccomp filter.
// Everything else that goes through them is passed on by a jump, so that even a vfork
// made by syscall finds its stack as it left it.
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "client/confinement.h"
#include "client/forked_child.h"
#include "client/preload/real_functions.h"
#include "client/session.h"
#include "rt/compiler.h"

namespace heapprofd {
namespace {

HPD_COLD void Resolve() {
  EnterSession();
}

// `install` makes the call; its result is negative when there is no filter after all.
template <typename Install>
HPD_NOINLINE auto Confine(Install install) {
  ThreadSlot* slot = EnterSession();
  if (IsForkSlot(slot))
    LeaveForkPending();  // the last opportunity
  const auto result = install();
  if (result >= 0)
    g_is_confined.store(1, std::memory_order_relaxed);
  return result;
}

bool IsNewFilter(long operation) {
  return operation == SECCOMP_SET_MODE_STRICT || operation == SECCOMP_SET_MODE_FILTER;
}

}  // namespace
}  // namespace heapprofd

using heapprofd::g_real;

// By other names, because the C library declares them with variable arguments: on this
// architecture these are passed alike.
HPD_EXPORT int Prctl(int option, long a, long b, long c, long d) asm("prctl");
// NOLINTNEXTLINE(readability-function-size): as many as the C library takes
HPD_EXPORT long RawSyscall(
    long number, long a, long b, long c, long d, long e, long f) asm("syscall");

int Prctl(int option, long a, long b, long c, long d) {
  if (HPD_UNLIKELY(g_real.prctl == nullptr))
    heapprofd::Resolve();
  if (HPD_UNLIKELY(option == PR_SET_SECCOMP))
    return heapprofd::Confine([=] { return g_real.prctl(option, a, b, c, d); });
  return g_real.prctl(option, a, b, c, d);
}

// NOLINTNEXTLINE(readability-function-size)
long RawSyscall(long number, long a, long b, long c, long d, long e, long f) {
  if (HPD_UNLIKELY(g_real.syscall == nullptr))
    heapprofd::Resolve();
  if (HPD_UNLIKELY(number == SYS_seccomp && heapprofd::IsNewFilter(a)))
    return heapprofd::Confine([=] { return g_real.syscall(number, a, b, c, d, e, f); });
  return g_real.syscall(number, a, b, c, d, e, f);
}
