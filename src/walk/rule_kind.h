// What a rule can say, on every architecture.
#pragma once

#include <cstdint>

namespace heapprofd {

enum class RuleKind : uint8_t {
  kUnknown = 0,  // no rule: the engine must be asked
  kSp = 1,       // CFA = sp + cfa_offset
  kBp = 2,       // CFA = bp + cfa_offset
  // x86-64: CFA = *(bp + cfa_offset): functions that realign their stack.
  kBpDeref = 3,
  // aarch64: as kBp, and where the frame ends is not known.
  kFrameRecord = 3,
  kEnd = 4,     // outermost frame
  kSignal = 5,  // signal trampoline: the interrupted registers are in the ucontext at sp
  kNoCode = 6,  // the key is no address of code: the stack is cut inside of it
  kStop = 7,    // no usable unwind information: the stack is cut here
  // Not encodable.
  kUnwalkable = 8,  // needs more than these rules can say; published as kStop
};

}  // namespace heapprofd
