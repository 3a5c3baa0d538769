// The heap dumps of an imported trace as pprof profiles, one per process, heap and dump:
// the four views of the seed (alloc_objects, alloc_space, objects, space), each the state
// at the dump. Heaps that report no frees (com.android.art) have the first two only; of
// dumps of the maximum that tell of their end, too, there are max_objects and max_space
// (the default).
//
// Locations have their address and mapping, mappings their build id, and functions that
// allocate are marked as frames to be dropped, so that a viewer's "top" does not show
// malloc alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "export/selection.h"
#include "tables/imported_trace.h"

namespace heapprofd {

struct DumpProfile {
  int64_t pid = 0;
  std::string heap_name;
  // Hands over the serialized profile, not compressed. For the sink, once.
  std::function<void(const PprofOutput&)> encode;
  std::string note = {};  // for who reads the messages; empty: there is nothing to say
  uint32_t dump = kNoId;  // ImportedTrace::dumps; kNoId: it is of another kind
};

using DumpProfileSink = std::function<Status(const DumpProfile&)>;

// "heap_dump.1.4711.libc.malloc", "java_heap_dump.1.4711": of a file with the profile,
// without its ending.
std::string PprofFileName(const DumpProfile& dump, size_t number);

// By dump: whether it has a profile.
std::vector<bool> HaveSamples(const ImportedTrace& trace);

// Hands over the profiles of the selected dumps in the order of the trace; a dump without
// any sample has none. Ends with the sink's first error. Read `trace` for conversion
// (TraceBuilder::ReadForConversion) if it is for nothing else.
Status ConvertToPprof(const ImportedTrace& trace,
                      const PprofSelection& selection,
                      const DumpProfileSink& sink);

// Why there is nothing to convert, and what to do; for traces and selections for which
// ConvertToPprof called no sink.
std::string ReasonForNoProfile(const ImportedTrace& trace,
                               const PprofSelection& selection);

}  // namespace heapprofd
