#include "engine/stacks/known_stacks.h"

#include <utility>

namespace heapprofd {

void KnownStacks::Forget(uint64_t position, uint64_t end) {
  if (position < forgotten_end_ && forgotten_.size() < kMaxStacks)
    forgotten_.Merge(stacks_);
  else
    forgotten_ = std::move(stacks_);
  stacks_.Clear();
  forgotten_end_ = end;
}

}  // namespace heapprofd
