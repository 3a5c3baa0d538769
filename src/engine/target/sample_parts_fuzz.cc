// Payloads of records are the target's.
#include <cstdint>
#include <cstdlib>

#include "engine/target/sample_parts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto payload = std::as_bytes(std::span(data, size));
  if (const auto parts = heapprofd::ParseSample(payload)) {
    if (parts->keys.size() != parts->record.frame_count ||
        parts->copy_bytes.size() > size)
      abort();
  }
  heapprofd::ParseFree(payload);
  return 0;
}
