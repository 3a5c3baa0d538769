// The code of a target is whatever the target has put there.
#include <cstddef>
#include <cstdint>

#include "attach/prologue.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using heapprofd::KeptBegin;
  constexpr uint64_t kAddress = 0x400000;
  const std::span<const uint8_t> bytes(data, size);
  for (const bool frees : {false, true}) {
    const auto kept = heapprofd::KeepBegin(bytes, {.arguments = 2, .frees = frees});
    if (!kept.ok())
      continue;
    const auto moved = heapprofd::MovePrologue(bytes, kAddress, kept.value(), 0x10000000);
    if (kept.value().length == 0 ||
        (moved.ok() && kept.value().length + moved.value().length > size))
      __builtin_trap();
  }
  const auto anywhere = [](uint64_t) { return true; };
  const auto onward = heapprofd::JumpOnward(bytes, kAddress);
  const auto stub = heapprofd::StubOnward(bytes, kAddress);
  const bool is_odd = heapprofd::IsLazyStub(bytes) && onward && stub;
  return heapprofd::ProbeLength(bytes, {}, kAddress, anywhere) > size || is_odd ? 1 : 0;
}
