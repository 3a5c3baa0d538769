// A trace file in memory, with the symbols and mapping files that the environment names,
// and what there is to say about it.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "symbolize/proguard_map.h"
#include "tables/trace_builder.h"

namespace heapprofd {

// Reads `path` for conversion, and prints what is wrong with it to stderr, as lines of
// `tool`.
Status LoadTrace(const std::string& tool, const std::string& path, TraceBuilder& builder);

// Names for frames without any, when PERFETTO_BINARY_PATH is set. Prints what was not
// found.
Status SymbolizeLoaded(const std::string& tool, TraceBuilder& builder);

// Reads mapping files; prints problems with single lines to stderr.
Result<std::vector<DeobfuscationMap>> ReadProguardMaps(
    const std::string& tool, const std::vector<ProguardSource>& sources);

// Those of PERFETTO_PROGUARD_MAP; none when it is not set.
Result<std::vector<ProguardSource>> ProguardSourcesFromEnvironment();

// Names of PERFETTO_PROGUARD_MAP for obfuscated frames.
Status DeobfuscateLoaded(const std::string& tool, TraceBuilder& builder);

}  // namespace heapprofd
