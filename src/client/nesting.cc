#include "client/nesting.h"

#include "client/session.h"

namespace heapprofd {

constinit thread_local NestingState t_nesting{};

void BeginNested(uint8_t heap_id) {
  if (t_nesting.depth++ != 0)
    return;
  t_nesting.heap_id = heap_id;
  const ThreadSlot* slot = EnterSession();
  t_nesting.slot = slot;
  if (slot == nullptr)
    return;
  t_nesting.calls = slot->calls;
  t_nesting.bytes = slot->granted - slot->bytes_left;
}

void EndNested() {
  if (--t_nesting.depth != 0 || t_nesting.slot == nullptr)
    return;
  ThreadSlot* slot = t_slot;
  if (slot != t_nesting.slot)
    return;  // a fork in between: the totals are another session's
  slot->calls = t_nesting.calls;
  slot->granted -= slot->granted - slot->bytes_left - t_nesting.bytes;
}

}  // namespace heapprofd
