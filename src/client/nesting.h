// Memory that a heap takes from another one, e.g. a pool's chunks from malloc: while a
// thread is inside such a scope, its allocations are raw material of the inner heap and
// are recorded nowhere else.
#pragma once

#include <cstdint>

#include "wire/shared_memory.h"

namespace heapprofd {

struct NestingState {
  uint32_t depth;
  uint8_t heap_id;         // of the outermost scope
  const ThreadSlot* slot;  // the thread's at the outermost scope's begin
  uint64_t calls;          // its totals then
  uint64_t bytes;
};

extern constinit thread_local NestingState t_nesting
    __attribute__((tls_model("initial-exec")));

// True when an allocation in this heap is raw material of another one.
inline bool IsNested(uint8_t heap_id) {
  return t_nesting.depth != 0 && t_nesting.heap_id != heap_id;
}

// Scopes may be nested in each other; every BeginNested needs its EndNested on the same
// thread. malloc's exact totals are what they would be without the calls inside.
void BeginNested(uint8_t heap_id);
void EndNested();

}  // namespace heapprofd
