// Java names as they are in the source, for a recording whose program was obfuscated
// (PERFETTO_PROGUARD_MAP).
#pragma once

#include <string>

#include "base/status.h"
#include "cli/record/output_directory.h"
#include "profile/code_table.h"
#include "profile/deobfuscation.h"
#include "profile/model.h"

namespace heapprofd {

// That of the mapping files in the environment; an empty one when it names none.
Result<Deobfuscator> DeobfuscatorFromEnvironment();

// Whether they can be read; for those who will need them later.
Status CheckProguardMaps();

// Renames what compilers of Java code write for perf: "void a.b.c(int)", "a.b.c".
void DeobfuscateFrames(const Deobfuscator& deobfuscator, const CodeTable& code);

// Writes what Perfetto's heap_profile leaves when the environment names mapping files:
// the packets to append to a trace, as `directory`/deobfuscation-packets, and the trace
// with them, as symbolized-trace.
Status WriteDeobfuscation(const OutputDirectory& directory);

}  // namespace heapprofd
