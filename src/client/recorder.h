// Turns a sampled event into a record in the ring.
#pragma once

#include <cstdint>

#include "client/session.h"

namespace heapprofd {

// Where the hook was called from: what malloc's caller looks like after the call returns.
struct CallSite {
  uint64_t stack;  // address of the return address
  uint64_t bp;     // its frame pointer
  AllocationFunction function = AllocationFunction::kUnknown;  // the hook's

  Cursor ToCursor() const {
    return {.key = *reinterpret_cast<const uint64_t*>(stack), .sp = stack + 8, .bp = bp};
  }
};

// A block as the program names it: by its address, or in other heaps than malloc's by any
// number that is unique among the heap's live blocks.
struct Block {
  uint64_t address;
  uint8_t heap_id = kMallocHeapId;
};

// `interval`: the one that the decision to sample was made for.
void RecordSample(ThreadSlot& slot,
                  const Block& block,
                  uint64_t size,
                  uint64_t interval,
                  const CallSite& site);

// For an address that the filter has just given up. Must happen before the block goes
// back to the allocator: afterwards another thread may get the same address, and its
// sample must come later.
void RecordFree(const Block& block, bool is_realloc);

// The realloc that `RecordFree(block, true)` announced has failed; the block lives on.
void RecordReallocFailed(const Block& block);

// What the program tells about itself: kMark or kDumpNow. A longer name is cut.
void RecordMark(RecordType type, const char* name);

// A module was unloaded: rules and module list are stale until the engine has looked.
void RecordModulesChanged();

}  // namespace heapprofd
