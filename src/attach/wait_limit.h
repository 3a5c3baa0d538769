// One end for all waits of a work on a process, whatever parts it has: each has a limit of
// its own, and together they would take longer than anybody waits for the work
// (attach/apart.h).
#pragma once

#include <cstdint>

namespace heapprofd {

// Until when the calling thread may wait for something that it gives `limit_ns` at most
// (CLOCK_MONOTONIC). May be over already: what is looked at again and again is looked at
// once in any case.
uint64_t WaitUntil(uint64_t limit_ns);

// Whether it may wait at all.
bool MayWait();

// While it exists, no wait of the calling thread is to go on after `end_ns`.
class WaitLimit {
 public:
  explicit WaitLimit(uint64_t end_ns);
  ~WaitLimit();
  WaitLimit(const WaitLimit&) = delete;
  WaitLimit& operator=(const WaitLimit&) = delete;

 private:
  uint64_t before_;
};

}  // namespace heapprofd
