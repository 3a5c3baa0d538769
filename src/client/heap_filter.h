// Which filter knows a sampled block, and by which key: malloc's blocks have a filter of
// their own, which every free() asks; the blocks of all other heaps share a second one.
#pragma once

#include <cstdint>

#include "client/confinement.h"
#include "client/recorder.h"
#include "client/session.h"

namespace heapprofd {

inline SampledFilter& FilterOf(const Block& block) {
  if (kIsAttached || block.heap_id == kMallocHeapId)
    return g_wiped.filter;
  return *g_session.heap_filter.load(std::memory_order_relaxed);
}

// Addresses of two heaps may be equal, so the heap goes into the key's upper bits, where
// the addresses of one program hardly differ. Numbers that are no addresses are spread
// over what the filter can keep exactly: two of 2^44 may be taken for each other.
inline uint64_t FilterKey(const Block& block) {
  constexpr uint64_t kAddressMask = (uint64_t{1} << 47) - 8;
  if (block.heap_id == kMallocHeapId)
    return block.address;
  if ((block.address & ~kAddressMask) == 0)
    return block.address ^ uint64_t { block.heap_id } << 39;
  uint64_t mixed =
      block.address * 0x9e3779b97f4a7c15u + block.heap_id * 0xd6e8feb86659fd93u;
  mixed ^= mixed >> 29;
  mixed *= 0xbf58476d1ce4e5b9u;
  return mixed >> 14 & kAddressMask;
}

}  // namespace heapprofd
