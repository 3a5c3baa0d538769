#include "tables/block_index.h"

#include <algorithm>
#include <utility>

namespace heapprofd {

BlockIndex::BlockIndex(const ImportedTrace& trace) : blocks_(trace.live_blocks) {
  for (uint32_t row = 0; row < blocks_.row_count(); ++row) {
    const uint32_t dump = blocks_.dump[row];
    List& list = by_process_[trace.dumps[dump].upid];
    if (dump > list.dump)
      list = {.dump = dump, .rows = {}};
    if (dump == list.dump)
      list.rows.push_back(row);
  }
  for (auto& [upid, list] : by_process_)
    std::ranges::sort(list.rows, {}, [this](uint32_t row) {
      return std::pair(blocks_.address[row], row);
    });
}

uint32_t BlockIndex::Find(uint32_t upid, uint64_t address) const {
  const auto list = by_process_.find(upid);
  if (list == by_process_.end())
    return kNoId;
  const std::vector<uint32_t>& rows = list->second.rows;
  const auto behind = std::ranges::upper_bound(
      rows, address, {}, [this](uint32_t row) { return blocks_.address[row]; });
  if (behind == rows.begin())
    return kNoId;
  const uint32_t row = *std::prev(behind);
  return address - blocks_.address[row] < blocks_.size[row] ? row : kNoId;
}

}  // namespace heapprofd
