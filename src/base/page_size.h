// Bytes of a page of this machine's memory.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace heapprofd {

inline uint64_t PageSize() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace heapprofd
