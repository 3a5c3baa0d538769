// Where a process has memory, as one reading of its maps tells.
#pragma once

#include <cstdint>
#include <vector>

#include "unwind/proc_maps.h"

namespace heapprofd {

struct AddressRange {
  uint64_t start = 0;
  uint64_t end = 0;
};

enum class MemoryKind : uint8_t { kNone, kData, kExecutable };

class MappedMemory {
 public:
  // In order of address.
  void Note(const MapEntry& entry);

  // What can be read and written, in order of address: where stacks can be.
  const std::vector<AddressRange>& writable() const { return writable_; }

  MemoryKind KindAt(uint64_t address) const;

 private:
  // Memory of one kind without a gap.
  struct Stretch {
    uint64_t start;
    uint64_t end;
    bool executable;
  };

  std::vector<AddressRange> writable_;
  std::vector<Stretch> stretches_;  // by address
};

}  // namespace heapprofd
