// The importers behind import_file.h, one per format. `source` delivers decompressed
// bytes from the start of the file; `name` is that of the file.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "import/import_file.h"
#include "import/perfetto/byte_source.h"
#include "tables/trace_builder.h"

namespace heapprofd {

// Folded stacks, as flamegraph.pl reads them: "main;f;g 4096" per line. The number is
// taken as bytes that are live.
Result<ImportReport> ImportFolded(ByteSource& source,
                                  const std::string& name,
                                  TraceBuilder& builder);

// What heaptrack records, interpreted (the .zst or .gz files it leaves): every allocation
// and every free. Becomes one dump at the end of the recording; resident memory over time
// becomes rows of process_memory.
Result<ImportReport> ImportHeaptrack(ByteSource& source,
                                     const std::string& name,
                                     TraceBuilder& builder);

// pprof (perftools.profiles.Profile). alloc_* and inuse_* figures become one dump.
Result<ImportReport> ImportPprof(ByteSource& source,
                                 const std::string& name,
                                 TraceBuilder& builder);

// A process for a file that tells no pid.
uint32_t AddNamedProcess(std::string_view name, TraceBuilder& builder);

}  // namespace heapprofd
