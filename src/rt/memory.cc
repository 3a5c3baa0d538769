// The four functions a compiler may call on its own, so that the client needs no libc.
// The linker script keeps them private: the target must go on using its own.
#include <cstddef>
#include <cstdint>

#include "rt/machine.h"

extern "C" {

void* memcpy(void* to, const void* from, size_t size) noexcept {
  constexpr size_t kStringOperationPays =
      512;  // bytes; below, its start costs more than a loop
  void* const start = to;
  if (size < kStringOperationPays && size % sizeof(uint64_t) == 0) {
    auto* target = static_cast<volatile uint64_t*>(to);
    const auto* source = static_cast<const uint64_t*>(from);
    for (size_t i = 0; i < size / sizeof(uint64_t); ++i)
      target[i] = source[i];
    return start;
  }
  heapprofd::rt::CopyBytes(to, from, size);
  return start;
}

void* memset(void* to, int value, size_t size) noexcept {
  heapprofd::rt::FillBytes(to, value, size);
  return to;
}

void* memmove(void* to, const void* from, size_t size) noexcept {
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  if (target <= source || target >= source + size)
    return memcpy(to, from, size);
  while (size-- > 0)
    target[size] = source[size];
  return to;
}

int memcmp(const void* left, const void* right, size_t size) noexcept {
  const auto* a = static_cast<const unsigned char*>(left);
  const auto* b = static_cast<const unsigned char*>(right);
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i])
      return a[i] - b[i];
  }
  return 0;
}

}  // extern "C"
