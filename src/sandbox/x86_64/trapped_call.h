// x86-64: sandbox/trapped_call.h.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace heapprofd {

inline uint64_t SecondArgument(const ucontext_t& context) {
  return static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RSI]);
}

inline void SetResult(int64_t result, ucontext_t* context) {
  context->uc_mcontext.gregs[REG_RAX] = result;
}

}  // namespace heapprofd
