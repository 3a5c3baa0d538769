#include "tables/callsite_index.h"

namespace heapprofd {
namespace {

uint64_t CallsiteHash(uint32_t parent, uint32_t frame) {
  return Mix((uint64_t{parent} << 32) | frame);
}

}  // namespace

uint32_t CallsiteIndex::Intern(uint32_t parent, uint32_t frame) {
  CallsiteTable& callsites = *callsites_;
  index_.Prepare([&](uint32_t row) {
    return CallsiteHash(callsites.parent[row], callsites.frame[row]);
  });
  uint32_t& row = index_.Find(CallsiteHash(parent, frame), [&](uint32_t other) {
    return callsites.parent[other] == parent && callsites.frame[other] == frame;
  });
  if (row == kNoId && callsites.row_count() < kMostTableRows) {
    row = static_cast<uint32_t>(callsites.row_count());
    callsites.parent.push_back(parent);
    callsites.frame.push_back(frame);
    callsites.depth.push_back(parent == kNoId ? 0 : callsites.depth[parent] + 1);
    index_.CountAdded();
  }
  return row;
}

void CallsiteIndex::Prefetch(uint32_t parent, uint32_t frame) const {
  index_.Prefetch(CallsiteHash(parent, frame));
}

uint32_t CallsiteIndex::Likely(uint32_t parent, uint32_t frame) const {
  const uint32_t callsite = index_.LikelyRow(CallsiteHash(parent, frame));
  if (callsite != kNoId) {
    __builtin_prefetch(&callsites_->parent[callsite]);
    __builtin_prefetch(&callsites_->frame[callsite]);
  }
  return callsite;
}

bool CallsiteIndex::Is(uint32_t callsite, uint32_t parent, uint32_t frame) const {
  return callsite != kNoId && callsites_->parent[callsite] == parent &&
         callsites_->frame[callsite] == frame;
}

}  // namespace heapprofd
