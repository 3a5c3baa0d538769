// Packets that traceconv makes, for a file of their own or for a bundle.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/convert/traceconv.h"
#include "tables/imported_trace.h"
#include "trace/fields.h"

namespace heapprofd {

// Appends a packet with this message to a serialized Trace.
void AppendPacket(std::string& trace, uint32_t field, const std::string& message);

// A serialized Trace with the symbols found for `trace`; empty: none. Prints what was not
// found.
Result<std::string> SymbolPackets(const TraceconvOptions& options,
                                  const ImportedTrace& trace);

// A serialized Trace with the content of the mapping files that flags and environment
// name; empty: they name none.
Result<std::string> DeobfuscationPackets(const TraceconvOptions& options);

}  // namespace heapprofd
