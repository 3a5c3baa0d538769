// Why there is nothing of a process that has not allocated at all, as far as can be seen, or
// little: the same words at the recording's end and in its trace.
#pragma once

#include <string>

namespace heapprofd {

// Of one that was recorded from its start.
inline constexpr char kNoCallsSeen[] =
    "the program called no allocation function that can be seen: it allocates nothing, "
    "or its allocator is linked statically into it; link that one dynamically";

// Of one that was attached to.
inline constexpr char kNoCallsMeanwhile[] =
    "the program called no allocation function while it was recorded; record it for "
    "longer, or while it works";

// Of one without a sample and without a call that was counted. `unhooked`: the first function
// without a hook, and why; empty: none.
inline std::string NoCallsWords(bool from_startup, const std::string& unhooked) {
  if (!unhooked.empty())
    return "the program called none of the functions that are hooked, and there is no "
           "hook for " +
           unhooked;
  return from_startup ? kNoCallsSeen : kNoCallsMeanwhile;
}

// Of one whose calls may go to a malloc in its executable.
inline std::string OwnMallocWords(const std::string& executable) {
  return executable +
         " has a malloc of its own (an allocator that is linked statically), of which a "
         "preloaded library sees only what that asks of the next one; start it by itself "
         "and record it with heap_profile -p PID, or link the allocator dynamically";
}

}  // namespace heapprofd
