// aarch64: attach/signal_frame.h. struct rt_sigframe of the kernel: siginfo, then a
// ucontext. The address that the handler returns to is not in it.
#pragma once

#include <cstdint>

namespace heapprofd {

inline constexpr uint64_t kStackPointerAt = 560;
inline constexpr uint64_t kProgramCounterAt = 568;
inline constexpr uint64_t kFrameMarkAt =
    592;  // the first context: magic and size of fpsimd_context
inline constexpr uint64_t kFrameMark = 0x0000'0210'4650'8001;

// `read`: as read(address, object).
template <typename Read>
bool IsSignalFrame(const Read& read, uint64_t frame) {
  constexpr uint64_t kStateAt = 576;
  constexpr uint64_t kNeverSet = 0xffff'ffff'0000'001f;  // of PSTATE, in 64-bit programs
  uint64_t state = 0;
  uint64_t mark = 0;
  return read(frame + kFrameMarkAt, &mark) && mark == kFrameMark &&
         read(frame + kStateAt, &state) && (state & kNeverSet) == 0;
}

}  // namespace heapprofd
