// Seeds of the samplers in targets.
#pragma once

#include <sys/random.h>

#include <cstdint>

#include "base/clock.h"

namespace heapprofd {

// Never 0.
inline uint64_t RandomSeed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != static_cast<ssize_t>(sizeof(seed)))
    seed = MonotonicNs();
  return seed | 1;
}

}  // namespace heapprofd
