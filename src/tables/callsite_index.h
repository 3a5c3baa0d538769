// Gives equal callsites one row.
#pragma once

#include <cstdint>

#include "base/row_index.h"
#include "tables/imported_trace.h"

namespace heapprofd {

class CallsiteIndex {
 public:
  // `callsites` is empty and outlives this.
  explicit CallsiteIndex(CallsiteTable* callsites) : callsites_(callsites) {}

  // `parent`: kNoId for the outermost frame. kNoId: there is no room.
  uint32_t Intern(uint32_t parent, uint32_t frame);

  // For who interns many callsites: prefetches the memory that the look-up of a callsite
  // needs; then, a little later, names the one that it most likely is (kNoId: none) and
  // prefetches that; and tells whether it is.
  void Prefetch(uint32_t parent, uint32_t frame) const;
  uint32_t Likely(uint32_t parent, uint32_t frame) const;
  bool Is(uint32_t callsite, uint32_t parent, uint32_t frame) const;

  // None will be interned any more.
  void Forget() { index_ = RowIndex(); }

 private:
  CallsiteTable* callsites_;
  RowIndex index_;
};

}  // namespace heapprofd
