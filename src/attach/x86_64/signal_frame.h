// x86-64: attach/signal_frame.h. struct rt_sigframe of the kernel: the handler's return
// address, then a ucontext.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace heapprofd {

inline constexpr uint64_t kStackPointerAt = 168;
inline constexpr uint64_t kProgramCounterAt = 176;
inline constexpr uint64_t kFrameMarkAt = 192;  // cs, gs, fs, ss of 64-bit code
inline constexpr uint64_t kFrameMark = 0x002b'0000'0000'0033;

// mov $15, %rax; syscall: rt_sigreturn(2), where each handler returns to. `read`: as
// read(address, object).
template <typename Read>
bool IsSignalFrame(const Read& read, uint64_t frame) {
  constexpr std::array<uint8_t, 9> kLong = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
  constexpr std::array<uint8_t, 7> kShort = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
  uint64_t restorer = 0;
  uint64_t mark = 0;
  std::array<uint8_t, kLong.size()> code{};
  return read(frame, &restorer) && read(frame + kFrameMarkAt, &mark) &&
         mark == kFrameMark && read(restorer, &code) &&
         (code == kLong || std::equal(kShort.begin(), kShort.end(), code.begin()));
}

}  // namespace heapprofd
