// A service that runs recordings, as a process's main loop: behind a socket of its own,
// or as one user's engine behind the front desk of root's service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "service/link.h"
#include "service/runtime_directory.h"

namespace heapprofd {

// --exit-when-idle: leaves when the last recording has ended, but gives the first one its
// time to come.
class IdleExit {
 public:
  explicit IdleExit(bool is_wanted) : is_wanted_(is_wanted) {}

  // Until it is to be asked again; -1: no need.
  int max_wait_ms() const { return is_wanted_ ? kLookMs : -1; }

  // `started`: recordings, or what stands for them.
  bool IsTime(size_t started, bool is_idle) const {
    return is_wanted_ && is_idle &&
           (started > 0 || MonotonicNs() - began_ns_ > kPatienceNs);
  }

 private:
  static constexpr uint64_t kPatienceNs = 10'000'000'000;  // for the first request
  static constexpr int kLookMs = 100;

  bool is_wanted_;
  uint64_t began_ns_ = MonotonicNs();
};

// Of this user alone. `listener`: see Reception. `exit_when_idle`: leaves when the last
// recording has ended. Gives an exit code.
int RunOwnService(std::unique_ptr<RuntimeDirectory> directory,
                  ScopedFd listener,
                  bool exit_when_idle);

// In a process of its own; leaves when there is nothing to do. `place`: the service's
// directory.
int RunEngine(Link link, const std::string& place);

}  // namespace heapprofd
