// Static probes (USDT) of the sampler, for listeners of the OpenTelemetry memory
// contract:
//   otel_memory:alloc(pointer, size, weighted_bytes)   a sampled allocation
//   otel_memory:free(pointer)                          the free of a sampled one; where
//                                                      every allocation is sampled, also
//                                                      of one older than the session
// Each is one no-op instruction until somebody listens; the semaphore beside it keeps
// the arguments from being computed for nobody. weighted_bytes is the unbiased share of
// the sample in the sum of all allocated bytes.
#pragma once

#include <cstdint>

#include "rt/compiler.h"

#define _SDT_HAS_SEMAPHORES 1  // NOLINT: the header's own switch
#include <sys/sdt.h>

// Found by the name that <sys/sdt.h> gives them. Tracers write to them.
extern "C" {
extern volatile uint16_t otel_memory_alloc_semaphore
    __attribute__((visibility("hidden")));
extern volatile uint16_t otel_memory_free_semaphore __attribute__((visibility("hidden")));
}

namespace heapprofd {

// size / (1 - exp(-size / interval)) in integers, within 2^-20 of it: x / (1 - exp(-x)) =
// 1 + x/2 + x²/12 - x⁴/720 + ... for x = size / interval < 1.
inline uint64_t WeightedBytes(uint64_t size, uint64_t interval) {
  if (size >= interval)
    return size;
  __extension__ using Wide = unsigned __int128;
  constexpr unsigned kBits = 32;
  uint64_t x = 0;  // divided bit by bit, without libgcc's function for 128 of them
  uint64_t rest = size;
  for (unsigned i = 0; i < kBits; ++i) {
    const bool is_one = rest >= interval - rest;
    rest = is_one ? rest - (interval - rest) : rest + rest;
    x = x << 1 | (is_one ? 1 : 0);
  }
  const auto x2 = static_cast<uint64_t>(Wide{x} * x >> kBits);
  const auto x4 = static_cast<uint64_t>(Wide{x2} * x2 >> kBits);
  const auto x6 = static_cast<uint64_t>(Wide{x4} * x2 >> kBits);
  const uint64_t factor =
      (uint64_t{1} << kBits) + x / 2 + x2 / 12 - x4 / 720 + x6 / 30240;
  return static_cast<uint64_t>(Wide{interval} * factor >> kBits);
}

#ifdef HPD_FLAT_CLIENT  // no tracer could find a probe in memory without a file
inline void ProbeAllocation(uint64_t, uint64_t, uint64_t) {}

inline void ProbeFree(uint64_t) {}
#else
inline void ProbeAllocation(uint64_t pointer, uint64_t size, uint64_t interval) {
  if (HPD_UNLIKELY(otel_memory_alloc_semaphore != 0)) {
    const uint64_t weighted = WeightedBytes(size, interval);
    STAP_PROBE3(otel_memory, alloc, pointer, size, weighted);
  }
}

inline void ProbeFree(uint64_t pointer) {
  if (HPD_UNLIKELY(otel_memory_free_semaphore != 0))
    STAP_PROBE1(otel_memory, free, pointer);
}
#endif

}  // namespace heapprofd
