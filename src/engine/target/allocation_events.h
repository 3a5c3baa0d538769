// Every sample and every free of one, as they are read: for stream_allocations.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace heapprofd {

struct AllocationEvent {
  uint64_t address = 0;
  uint64_t size = 0;         // bytes asked for
  uint64_t sample_size = 0;  // bytes that the sample stands for
  uint64_t time_ns = 0;      // CLOCK_MONOTONIC
  uint32_t heap_id = 0;      // 0: malloc's; the process numbers the others
};

class AllocationEvents {
 public:
  virtual ~AllocationEvents() = default;
  virtual void OnAllocation(pid_t pid, const AllocationEvent& event) = 0;
  virtual void OnFree(pid_t pid, uint64_t address, uint32_t heap_id) = 0;
};

}  // namespace heapprofd
