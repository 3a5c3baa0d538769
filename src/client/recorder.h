// Turns a sampled event into a record in the ring.
#pragma once

#include <cstdint>

#include "client/session.h"

namespace heapprofd {

// Where the hook was called from: what malloc's caller looks like after the call returns.
struct CallSite {
  uint64_t stack;  // address of the return address
  uint64_t bp;     // rbp at the call

  Cursor ToCursor() const {
    return {.key = *reinterpret_cast<const uint64_t*>(stack), .sp = stack + 8, .bp = bp};
  }
};

// `interval`: the one that the decision to sample was made for.
void RecordSample(ThreadSlot& slot,
                  uint64_t address,
                  uint64_t size,
                  uint64_t interval,
                  const CallSite& site);

// For an address that the filter has just given up. Must happen before the block goes
// back to the allocator: afterwards another thread may get the same address, and its
// sample must come later.
void RecordFree(uint64_t address, bool is_realloc);

// The realloc that `RecordFree(address, true)` announced has failed; the block lives on.
void RecordReallocFailed(uint64_t address);

// A module was unloaded: rules and module list are stale until the engine has looked.
void RecordModulesChanged();

}  // namespace heapprofd
