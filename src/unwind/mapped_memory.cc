#include "unwind/mapped_memory.h"

#include <algorithm>
#include <iterator>

namespace heapprofd {

void MappedMemory::Note(const MapEntry& entry) {
  if (entry.readable && entry.writable)
    writable_.push_back({.start = entry.start, .end = entry.end});
  if (!stretches_.empty() && stretches_.back().end == entry.start &&
      stretches_.back().executable == entry.executable)
    stretches_.back().end = entry.end;
  else
    stretches_.push_back(
        {.start = entry.start, .end = entry.end, .executable = entry.executable});
}

MemoryKind MappedMemory::KindAt(uint64_t address) const {
  const auto after = std::ranges::upper_bound(stretches_, address, {}, &Stretch::start);
  if (after == stretches_.begin() || address >= std::prev(after)->end)
    return MemoryKind::kNone;
  return std::prev(after)->executable ? MemoryKind::kExecutable : MemoryKind::kData;
}

}  // namespace heapprofd
