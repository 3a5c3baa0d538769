// /proc/PID/maps holds path names that the target chose.
#include <cstdint>
#include <cstdlib>

#include "unwind/proc_maps.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const heapprofd::MapEntry& entry : heapprofd::ParseMaps(text)) {
    if (entry.start >= entry.end || entry.path.size() > size)
      abort();
  }
  return 0;
}
