// Names come from symbol tables of foreign files.
#include <cstddef>
#include <cstdint>
#include <string>

#include "symbolize/demangle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(data, data + size);
  for (const char* prefix : {"", "_Z", "_ZN", "_R", "_D"}) {
    heapprofd::Demangle(prefix + bytes);
    heapprofd::ShortName(prefix + bytes);
  }
  return 0;
}
