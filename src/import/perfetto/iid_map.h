// What the interned ids of one packet sequence mean. Writers count them up, so most are
// found in an array that begins with the first id; a hostile file's may be anything.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/column.h"
#include "profile/model.h"

namespace heapprofd {

class IidMap {
 public:
  // kNoId: unknown.
  uint32_t Find(uint64_t iid) const {
    const uint64_t place = iid - first_;  // wraps for those below
    if (place < dense_.size() && dense_[place] != kNoId)
      return dense_[place];
    if (sparse_.empty())
      return kNoId;
    const auto entry = sparse_.find(iid);
    return entry == sparse_.end() ? kNoId : entry->second;
  }

  // False: the id means something else already, and still does.
  bool Insert(uint64_t iid, uint32_t value) {
    const uint32_t present = Find(iid);
    if (present != kNoId)
      return present == value;
    if (count_ == 0)
      first_ = iid;
    ++count_;
    const uint64_t place = iid - first_;
    if (place >= dense_.size() && place < count_ * kSlack + kFirst)
      dense_.resize(place + 1, kNoId);
    if (place < dense_.size())
      dense_[place] = value;
    else
      sparse_[iid] = value;
    return true;
  }

  void Clear() { *this = IidMap(); }

 private:
  // The array may have this many places per id: kinds of objects share one count of ids.
  static constexpr uint64_t kSlack = 8;
  static constexpr uint64_t kFirst = 4096;

  Column<uint32_t> dense_;  // by id, from first_ on
  std::unordered_map<uint64_t, uint32_t> sparse_;
  uint64_t first_ = 0;
  uint64_t count_ = 0;
};

}  // namespace heapprofd
