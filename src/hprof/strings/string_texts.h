// The texts of some strings of a dump.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hprof/fields/field_layout.h"
#include "hprof/load_graph.h"

namespace heapprofd::hprof {

// By the ids of strings, or of arrays of characters. Those that are neither, or not
// there, are left out. A dump may have an object twice: the first one counts. At most
// `most` characters of each.
std::map<uint64_t, std::string> FindTexts(const DumpFile& file,
                                          const HeapDump& dump,
                                          const ClassTable& classes,
                                          const std::vector<uint64_t>& ids,
                                          size_t most);

}  // namespace heapprofd::hprof
