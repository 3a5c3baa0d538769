// What a session records and how.
#pragma once

#include <cstdint>

#include "engine/heap_selection.h"
#include "wire/shared_memory.h"

namespace heapprofd {

struct SessionConfig {
  uint64_t interval_bytes = 4096;
  HeapSelection heaps;
  uint64_t ring_size_bytes = uint64_t{8} << 20;
  WhenFull when_full = WhenFull::kBlock;
  uint64_t block_timeout_us = 0;  // 0: as long as the engine lives
  bool follow_children = true;
  uint32_t check_period =
      1024;  // every n-th sample of a thread proves its walk; 0: never
};

inline constexpr uint32_t kDefaultStackCopy = 128 * 1024;  // bytes

}  // namespace heapprofd
