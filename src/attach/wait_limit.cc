#include "attach/wait_limit.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"

namespace heapprofd {
namespace {

thread_local uint64_t t_waits_end_ns = std::numeric_limits<uint64_t>::max();

}  // namespace

uint64_t WaitUntil(uint64_t limit_ns) {
  return std::min(MonotonicNs() + limit_ns, t_waits_end_ns);
}

bool MayWait() {
  return MonotonicNs() < t_waits_end_ns;
}

WaitLimit::WaitLimit(uint64_t end_ns)
    : before_(std::exchange(t_waits_end_ns, std::min(end_ns, t_waits_end_ns))) {}

WaitLimit::~WaitLimit() {
  t_waits_end_ns = before_;
}

}  // namespace heapprofd
