#include "unwind/vain_lookups.h"

#include <cstddef>

namespace heapprofd {
namespace {

constexpr size_t kMaxAddresses = 4096;

}  // namespace

void VainLookups::Ask(uint64_t pc) {
  if (asked_.size() >= kMaxAddresses)
    asked_.clear();
  asked_.try_emplace(pc, readings_);
}

bool VainLookups::Conclude(uint64_t pc) {
  const auto asked = asked_.find(pc);
  const bool is_read_since = asked != asked_.end() && asked->second < readings_;
  if (!is_read_since || certain_.size() >= kMaxAddresses)
    return false;
  asked_.erase(asked);
  certain_.insert(pc);
  return true;
}

bool VainLookups::Contradict(uint64_t start, uint64_t end) {
  const auto first = certain_.lower_bound(start);
  if (first == certain_.end() || *first >= end)
    return false;
  certain_.clear();
  return true;
}

void VainLookups::ForgetAddresses() {
  asked_ = {};
  certain_ = {};
}

}  // namespace heapprofd
