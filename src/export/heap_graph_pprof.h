// The Java heaps of an imported trace as pprof profiles, one per process and snapshot.
//
// A stack is a shortest path of references from a root, as names of classes: what an
// object "allocates" is what it keeps alive. Two figures per path: `objects` and `space`,
// of the objects at its end. Memory outside the Java heap is a "[native] Class" below its
// object.
#pragma once

#include "export/trace_pprof.h"

namespace heapprofd {

// Hands over the profiles of the snapshots of selection.pid and selection.timestamps, in
// the order of the trace; a snapshot without objects has none, and that of one without
// reachable objects has no samples. Ends with the sink's first error.
Status ConvertHeapGraphsToPprof(const ImportedTrace& trace,
                                const PprofSelection& selection,
                                const DumpProfileSink& sink);

// See ReasonForNoProfile.
std::string ReasonForNoHeapGraph(const ImportedTrace& trace,
                                 const PprofSelection& selection);

}  // namespace heapprofd
