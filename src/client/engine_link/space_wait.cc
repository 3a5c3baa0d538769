#include "client/engine_link/space_wait.h"

#include <algorithm>

#include "client/confinement.h"
#include "client/session.h"

namespace heapprofd {
namespace {

constexpr uint64_t kNsPerUs = 1000;
constexpr uint64_t kConfinedNapNs = 1'000'000;  // nobody can wake it
constexpr uint64_t kShortestNapNs = 32'000'000;
constexpr uint64_t kLongestNapNs = 256'000'000;

// What the first record of a realloc has waited for space, ns; its second one counts it.
#ifdef HPD_FLAT_CLIENT
constexpr FlatThreadVariable<uint64_t, &FlatThread::waited_ns> t_waited_ns;
#else
__attribute__((tls_model("initial-exec"))) thread_local uint64_t t_waited_ns;
#endif

}  // namespace

SpaceWait::SpaceWait(Part part)
    : part_(part),
      wait_(g_session.engine()->control.block_timeout_us.load(std::memory_order_relaxed) *
                kNsPerUs,
            part == Part::kLast ? uint64_t{t_waited_ns} : 0),
      nap_ns_(kShortestNapNs) {}

SpaceWait::~SpaceWait() {
  t_waited_ns = part_ == Part::kFirstOfTwo ? wait_.waited_ns() : 0;
}

bool SpaceWait::ForSpace(size_t payload) {
  const SessionControl& control = g_session.engine()->control;
  const RingWriter& ring = g_session.ring();
  if (control.when_full.load(std::memory_order_relaxed) !=
          static_cast<uint32_t>(WhenFull::kBlock) ||
      !ring.CanEverHold(payload))
    return false;
  // Asked before each look for space: a writer whom others always forestall ends, too.
  while (wait_.MayGoOn()) {
    const uint32_t mark = ring.release_mark();
    if (ring.HasSpace(payload))
      return true;
    if (IsSessionOver(control))
      return false;
    Sleep(mark);
  }
  g_session.client()->ring.client_error.store(
      static_cast<uint32_t>(ClientError::kBlockTimeout), std::memory_order_relaxed);
  return false;
}

void SpaceWait::Sleep(uint32_t mark) {
  if (IsConfined())
    return Nap(kConfinedNapNs);
  g_session.ring().SleepUntilRelease(mark, std::min(nap_ns_, wait_.rest_ns()));
  nap_ns_ = std::min(2 * nap_ns_, kLongestNapNs);
}

}  // namespace heapprofd
