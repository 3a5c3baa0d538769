// DeobfuscationMapping, the form in which a trace carries ProGuard and R8 mappings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profile/deobfuscation.h"
#include "trace/trace_builder.h"

namespace heapprofd {

// Serialized messages with the content of `map`, each small enough for a packet.
std::vector<std::string> DeobfuscationMessages(const DeobfuscationMap& map);

// The reverse, of one message.
DeobfuscationMap ReadDeobfuscationMessage(std::string_view message);

// Names for the Java frames and heap graph classes of a trace. A frame's package is that
// of the file it comes from, where the path tells it
// ("/data/app/com.example-1/base.apk"); other frames are looked for in all maps. Frames
// with a line become symbol sets, so that inlined methods show. "[DEDUPED]" in a name
// stays.
void ApplyDeobfuscation(TraceBuilder& builder, const Deobfuscator& deobfuscator);

}  // namespace heapprofd
