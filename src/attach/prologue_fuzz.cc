// The code of a target is whatever the target has put there.
#include <cstddef>
#include <cstdint>

#include "attach/prologue.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  const auto moved = heapprofd::MovePrologue(bytes, 0x400000, 0x10000000);
  if (moved.ok() && moved.value().length > size)
    __builtin_trap();
  return heapprofd::SkippedPrefix(bytes) > size ? 1 : 0;
}
