// The packets of trace files: plain, gzip, zstd, concatenations of these, and bundles
// (tar archives of such files, as `traceconv bundle` makes them).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "import/perfetto/byte_source.h"

namespace heapprofd {

struct ReadReport {
  uint64_t bytes = 0;  // decompressed
  uint64_t packets = 0;
  uint64_t lost_bytes = 0;  // at the end of a file, no whole packet
  std::string damage;       // why reading ended early; empty: it did not
};

// The views end when the visitor returns.
using PacketVisitor = std::function<void(std::string_view packet)>;

// Visits every packet of `path` ("-" is standard input). A file that ends in the middle
// of a packet or is damaged is read as far as it goes. Errors: it cannot be read (kIo),
// is empty (kNotFound), or holds not even one packet (kCorrupt).
Result<ReadReport> ReadPackets(const std::string& path, const PacketVisitor& visit);

// The same of any source; `name` is for messages.
Result<ReadReport> ReadPackets(ByteSource& source,
                               const std::string& name,
                               const PacketVisitor& visit);

}  // namespace heapprofd
