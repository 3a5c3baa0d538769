#include "client/engine_link/session_watch.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>

#include "rt/syscall.h"

namespace heapprofd {
namespace {

constexpr long kNsPerSecond = 1'000'000'000;
// An engine that is killed wakes nobody.
constexpr long kLookNs = 500'000'000;
// Every user of the machine can map the wake page of its service. To the kernel it is one
// futex for all of them: any can move those that sleep on it to a page of his own, where
// nobody wakes them. Each is back after this time. A look costs what any sleep that ends
// does: at most 0.2 ms, on a crowded virtual machine with cold caches.
constexpr long kDormantLookNs = 1'000'000'000;
// And any can wake them, as often as he likes. When the service does, there is something
// new; otherwise they are not to be woken again at once.
constexpr long kPauseNs = 50'000'000;
// The first of a set. No other process reaches these.
constexpr long kPrivateWords = 2;

// Futexes to wait on together (futex_waitv, Linux 5.16).
class FutexSet {
 public:
  void Add(const void* word, uint32_t value, uint32_t flags) {
    waiters_[count_++] = {.val = value,
                          .uaddr = reinterpret_cast<uint64_t>(word),
                          .flags = FUTEX_32 | flags,
                          .__reserved = 0};
  }

  // Until one of the words is woken or has another value, or the time is up. Gives the
  // number of the one that was woken; -1: none, or nobody can tell.
  long Wait(long limit_ns) {
    timespec until{};
    rt::Syscall(SYS_clock_gettime, CLOCK_MONOTONIC, rt::ToArg(&until));
    until.tv_nsec += limit_ns;
    until.tv_sec += until.tv_nsec / kNsPerSecond;
    until.tv_nsec %= kNsPerSecond;
    constexpr long kNoSuchCall = -38;
    const long woken = rt::Syscall(SYS_futex_waitv, rt::ToArg(waiters_), count_, 0,
                                   rt::ToArg(&until), CLOCK_MONOTONIC);
    if (woken != kNoSuchCall)
      return rt::IsError(woken) ? -1 : woken;
    const long pause_ns = std::min(limit_ns, kLookNs);
    const timespec pause{.tv_sec = 0, .tv_nsec = pause_ns};
    rt::Syscall(SYS_futex, static_cast<long>(waiters_[0].uaddr), FUTEX_WAIT_PRIVATE,
                static_cast<long>(waiters_[0].val), rt::ToArg(&pause));
    return -1;
  }

 private:
  futex_waitv waiters_[2 + kServicePlaces] = {};
  unsigned count_ = 0;
};

}  // namespace

bool SetSwitch(SwitchPage& page, bool is_on) {
  const WakePage* user = g_service_places[0].wake;
  const WakePage* system = g_service_places[1].wake;
  const WakePage* shown = system != nullptr ? system : user;
  // A size of 0 makes a second mapping of a shared page.
  if (is_on || shown == nullptr ||
      rt::IsError(rt::Syscall(SYS_mremap, rt::ToArg(shown), 0, kWakePageSize,
                              MREMAP_MAYMOVE | MREMAP_FIXED, rt::ToArg(&page)))) {
    rt::Syscall(SYS_mmap, rt::ToArg(&page), kWakePageSize, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    page.word.recordings.store(is_on ? 1 : 0, std::memory_order_release);
  }
  return user == nullptr || system == nullptr;
}

bool WaitForSession(uint32_t session, const std::atomic<uint32_t>& stop) {
  long woken = -1;  // and nothing has changed
  while (stop.load(std::memory_order_acquire) == 0) {
    const SessionState state = g_session.state.load(std::memory_order_acquire);
    if (OngoingSession() != session || (state == SessionState::kDormant && IsWoken()))
      return true;
    FutexSet futexes;
    futexes.Add(&stop, 0, FUTEX_PRIVATE_FLAG);
    futexes.Add(&g_session.state, static_cast<uint32_t>(state), FUTEX_PRIVATE_FLAG);
    if (woken >= kPrivateWords) {
      woken = futexes.Wait(kPauseNs);
      continue;
    }
    if (state != SessionState::kDormant) {
      if (state == SessionState::kActive)  // else it is the parent's word, or changes
        futexes.Add(&g_session.engine()->control.active, 1, 0);
      woken = futexes.Wait(kLookNs);
      continue;
    }
    bool has_place = false;
    for (const ServicePlace& place : g_service_places) {
      const WakePage* wake = place.wake;
      if (wake == nullptr)
        continue;
      has_place = true;
      futexes.Add(&wake->generation, place.seen.load(std::memory_order_relaxed), 0);
    }
    if (!has_place)
      return false;
    woken = futexes.Wait(kDormantLookNs);
  }
  return false;
}

}  // namespace heapprofd
