// aarch64: sandbox/trapped_call.h.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace heapprofd {

inline uint64_t SecondArgument(const ucontext_t& context) {
  return context.uc_mcontext.regs[1];
}

inline void SetResult(int64_t result, ucontext_t* context) {
  context->uc_mcontext.regs[0] = static_cast<uint64_t>(result);
}

}  // namespace heapprofd
