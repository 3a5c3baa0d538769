// Which heaps a session records, and at which interval.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "wire/heaps.h"

namespace heapprofd {

// Nothing set: malloc's heap alone. The first entry with a heap's name decides, then
// `excluded`, then `all`.
struct HeapSelection {
  struct Heap {
    std::string name;
    uint64_t interval_bytes = 0;  // 0: the session's
  };

  std::vector<Heap> heaps;            // exact names; "libc.malloc" is malloc's
  std::vector<std::string> excluded;  // not even with `all`
  bool all = false;                   // every heap that is not named elsewhere

  bool IsMallocAlone() const;

  bool HasMalloc() const;
};

// Refuses what the shared rules cannot hold: more than kMaxHeapRules names, or one that
// is empty or longer than a heap's can be.
Status CheckHeapSelection(const HeapSelection& selection);

// Fills `rules` from a selection that passed the check; `interval_bytes` is the
// session's.
void FillHeapRules(const HeapSelection& selection,
                   uint64_t interval_bytes,
                   HeapRules* rules);

}  // namespace heapprofd
