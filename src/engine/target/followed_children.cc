#include "engine/target/followed_children.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/target/forked_children.h"

namespace heapprofd {

UnprofiledCounts CountUnprofiled(const ClientBlock& client) {
  constexpr uint32_t kMost = 1'000'000;
  UnprofiledCounts counts;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto& counter = client.ring.*kUnprofiledChildren[i].counter;
    counts[i] = std::min(counter.load(std::memory_order_relaxed), kMost);
  }
  return counts;
}

void FollowedChildren::Count(const ClientBlock& client) {
  if (is_wanted_)
    *counted_ = CountForkedChildren(client);
}

// Only when they become scarce: it takes a look at all processes of the machine, in turns
// of a few milliseconds, and ten times as long until the next one.
void FollowedChildren::FreeSlots(ClientBlock& client, uint64_t end_ns) {
  constexpr uint64_t kTurnNs = 2'000'000;
  constexpr uint64_t kPauseNs = 500'000'000;
  if (!is_wanted_ ||
      client.ring.fork_slot_count.load(std::memory_order_relaxed) < kMaxForkSlots / 2)
    return;
  const uint64_t now = MonotonicNs();
  if (now < slots_next_ns_ || now >= end_ns)
    return;
  if (ended_owners_ == nullptr)
    ended_owners_ = std::make_unique<EndedOwners>(client);
  const bool is_done = ended_owners_->LookUntil(std::min(now + kTurnNs, end_ns));
  slots_next_ns_ = MonotonicNs() + (is_done ? kPauseNs : 10 * kTurnNs);
  if (!is_done)
    return;
  ended_owners_->Free(client);
  ended_owners_.reset();
}

void FollowedChildren::Keep(std::unique_ptr<SharedMemory> memory, bool may_begin) {
  ended_owners_.reset();
  if (!is_wanted_ || memory == nullptr)
    return;
  Count(memory->client());
  if (!may_begin && CountOwnedForkSlots(memory->client()) == 0)
    return;
  left_memory_ =
      std::make_unique<LeftMemory>(SharedMemory::TakeClientFile(std::move(memory)));
}

void FollowedChildren::LookAfter() {
  if (!left_memory_->IsInUse())
    Leave();
}

void FollowedChildren::Leave() {
  if (const ClientBlock* client = left_memory_->client()) {
    Count(*client);
    unprofiled_ = CountUnprofiled(*client);
  }
  left_memory_.reset();
}

}  // namespace heapprofd
