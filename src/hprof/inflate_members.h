// A gzip file can consist of several that follow each other: HotSpot writes one for each
// MiB of a dump. They can be inflated by all processors at once, since each one's length
// stands at its end.
#pragma once

#include <cstdint>
#include <string_view>

namespace heapprofd::hprof {

struct InflatedPart {
  uint64_t compressed = 0;  // bytes that are done
  uint64_t inflated = 0;    // what has become of them
};

// Writes what the first members inflate to into the file `to`, from its beginning. Those
// from the first one on that is damaged, cut, or none after all are left to others, as is
// everything when there is but one. Behind what is told the file may have bytes of them.
// 0, or errno of writing. A thread takes at least `share_bytes` at once.
int InflateMembers(std::string_view compressed,
                   int to,
                   InflatedPart* part,
                   uint64_t share_bytes = uint64_t{256} << 10);

}  // namespace heapprofd::hprof
