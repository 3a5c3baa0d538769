#include "engine/session_config.h"

#include <algorithm>

#include "profile/model.h"

namespace heapprofd {

uint64_t IntervalOfHeap(const SessionConfig& config, const std::string& heap_name) {
  const HeapSelection& selection = config.heaps;
  for (const HeapSelection::Heap& heap : selection.heaps) {
    if (heap.name == heap_name)
      return heap.interval_bytes != 0 ? heap.interval_bytes : config.interval_bytes;
  }
  const bool is_excluded = std::find(selection.excluded.begin(), selection.excluded.end(),
                                     heap_name) != selection.excluded.end();
  const bool is_default = selection.heaps.empty() && heap_name == kMallocHeapName;
  return !is_excluded && (selection.all || is_default) ? config.interval_bytes : 0;
}

}  // namespace heapprofd
