// Packets as text and plain read them: each by itself, whatever is in it.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "import/perfetto/packet_reader.h"

namespace heapprofd {

// As ReadPackets, of what is a trace: a pprof file's bytes can be taken for packets, too.
Result<ReadReport> ReadTracePackets(const std::string& path, const PacketVisitor& visit);

// Says which packets are missing; `fate`: "left out".
void TellDamage(const ReadReport& report, uint64_t damaged, const char* fate);

}  // namespace heapprofd
