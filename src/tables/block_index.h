// Which sampled block has an address in it: for traces that list their live blocks
// (ImportedTrace::live_blocks).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tables/imported_trace.h"

namespace heapprofd {

class BlockIndex {
 public:
  // The trace, which is decoded, outlives it.
  explicit BlockIndex(const ImportedTrace& trace);

  // Of the last list of this process: a row of live_blocks. kNoId: no block of it has the
  // address.
  uint32_t Find(uint32_t upid, uint64_t address) const;

 private:
  struct List {
    uint32_t dump = 0;
    std::vector<uint32_t> rows;  // in the order of addresses
  };

  const LiveBlockTable& blocks_;
  std::map<uint32_t, List> by_process_;
};

}  // namespace heapprofd
