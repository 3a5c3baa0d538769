// Why there is nothing of a process that has not allocated at all, as far as can be seen:
// the same words at the recording's end and in its trace.
#pragma once

namespace heapprofd {

// Of one that was recorded from its start.
inline constexpr char kNoCallsSeen[] =
    "the program called no allocation function that can be seen: it allocates nothing, "
    "or its allocator is linked statically into it; link that one dynamically";

// Of one that was attached to.
inline constexpr char kNoCallsMeanwhile[] =
    "the program called no allocation function while it was recorded; record it for "
    "longer, or while it works";

}  // namespace heapprofd
