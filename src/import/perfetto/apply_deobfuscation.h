// Puts the names of mapping files to the Java frames and classes of a trace.
#pragma once

#include "profile/deobfuscation.h"
#include "tables/trace_builder.h"

namespace heapprofd {

// Names for the Java frames and heap graph classes of a trace. A frame's package is that
// of the file it comes from, where the path tells it
// ("/data/app/com.example-1/base.apk"); other frames are looked for in all maps. Frames
// with a line become symbol sets, so that inlined methods show. "[DEDUPED]" in a name
// stays.
//
// A call of an outline becomes a call of what the outline was made from: it is left out
// of the stack, and its caller gets the line it would have had.
void ApplyDeobfuscation(TraceBuilder& builder, const Deobfuscator& deobfuscator);

}  // namespace heapprofd
