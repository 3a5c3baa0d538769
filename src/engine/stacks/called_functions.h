// Puts the allocation function that the program called (malloc, operator new) inside of
// its stacks, where a profiler that unwinds from the hook outward would have it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "profile/callsite_interner.h"
#include "profile/model.h"
#include "wire/allocation_function.h"

namespace heapprofd {

class CalledFunctions {
 public:
  // Both outlive it.
  CalledFunctions(TargetProfile* profile, CallsiteInterner* interner);

  // The callsite of `function`, as a record has it, called in `stack`; `stack` itself
  // when there is no such function.
  CallsiteId Intern(CallsiteId stack, uint64_t function);

 private:
  static constexpr size_t kFunctions = static_cast<size_t>(AllocationFunction::kCount);

  // What was asked for a stack last: most call one function.
  struct Known {
    CallsiteId callsite = kNoId;
    uint8_t function = 0;
  };

  FrameId FrameOf(uint64_t function);

  TargetProfile* profile_;
  CallsiteInterner* interner_;
  std::array<FrameId, kFunctions> frames_;
  std::vector<Known> known_;  // by CallsiteId of the stack
};

}  // namespace heapprofd
