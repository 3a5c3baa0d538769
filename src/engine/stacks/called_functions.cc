#include "engine/stacks/called_functions.h"

#include <iterator>

namespace heapprofd {
namespace {

struct FunctionName {
  const char* symbol;
  const char* text;
};

constexpr FunctionName kNames[] = {{"", ""},
#define HPD_NAME(name, symbol, text) {symbol, text},
                                   HPD_ALLOCATION_FUNCTION_LIST(HPD_NAME)
#undef HPD_NAME
};
static_assert(std::size(kNames) == static_cast<size_t>(AllocationFunction::kCount));

}  // namespace

CalledFunctions::CalledFunctions(TargetProfile* profile, CallsiteInterner* interner)
    : profile_(profile), interner_(interner) {
  frames_.fill(kNoId);
}

FrameId CalledFunctions::FrameOf(uint64_t function) {
  FrameId& id = frames_[function];
  if (id != kNoId)
    return id;
  id = interner_->InternNamedFrame(kNames[function].symbol);
  Frame& frame = profile_->frames[id];
  frame.is_allocator = true;
  frame.lines[0].function = kNames[function].text;
  return id;
}

CallsiteId CalledFunctions::Intern(CallsiteId stack, uint64_t function) {
  if (function == 0 || function >= kFunctions)
    return stack;
  if (known_.size() <= stack)
    known_.resize(profile_->callsites.size());
  Known& known = known_[stack];
  if (known.function != function)
    known = {.callsite = interner_->InternCallsite(stack, FrameOf(function)),
             .function = static_cast<uint8_t>(function)};
  return known.callsite;
}

}  // namespace heapprofd
