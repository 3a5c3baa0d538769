#include "client/confinement.h"

#include <time.h>

#include "client/session.h"
#include "rt/syscall.h"

namespace heapprofd {

#ifndef HPD_FLAT_CLIENT
constinit std::atomic<uint32_t> g_is_confined{};
#endif

void Nap(long nanoseconds) {
  if (!IsConfined()) {
    const timespec pause{.tv_sec = 0, .tv_nsec = nanoseconds};
    rt::Syscall(SYS_nanosleep, rt::ToArg(&pause));
    return;
  }
  const uint64_t end = rt::ReadTsc() + rt::TicksOf(static_cast<uint64_t>(nanoseconds));
  while (rt::ReadTsc() < end)
    rt::Pause();
}

// In a forked child the memory is still the parent's, which is where it belongs.
void CountUnprofiled(std::atomic<uint32_t> RingHeader::*counter, int count) {
  if (g_session.memory.load(std::memory_order_acquire) != nullptr)
    (g_session.client()->ring.*counter)
        .fetch_add(static_cast<uint32_t>(count), std::memory_order_relaxed);
}

}  // namespace heapprofd
