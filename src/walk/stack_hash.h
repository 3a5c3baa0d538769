// Hashes of call stacks. They are extended inward, so that all stacks which share their
// outer frames share the hash of these, and either side can name the common part by it.
#pragma once

#include <cstdint>

namespace heapprofd {

// Hash of a stack without frames.
inline constexpr uint64_t kEmptyStackHash = 0x9e3779b97f4a7c15u;

// Hash of the stack whose outer frames have the hash `outer` and whose innermost frame
// has the key `key` (rule.h). Never 0.
inline uint64_t ExtendStackHash(uint64_t outer, uint64_t key) {
  uint64_t hash = (outer ^ key) * 0xff51afd7ed558ccdu;
  hash ^= hash >> 29;
  return hash != 0 ? hash : 1;
}

}  // namespace heapprofd
