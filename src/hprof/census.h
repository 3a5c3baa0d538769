// The first walk over a heap dump: its classes, how many instances they have, and the
// ids of all objects when these are asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/column.h"
#include "hprof/class_table.h"
#include "hprof/dump_file.h"

namespace heapprofd::hprof {

struct HeapCensus {
  ClassTable classes;
  ArrayFigures primitive_arrays[kBasicTypeCount];  // by type
  uint32_t class_class = 0;  // the row of java.lang.Class; 0: there is none
  uint64_t class_objects = 0;
  uint64_t objects = 0;  // of all kinds, those too
  uint64_t roots = 0;
  ObjectLayout layout;
  bool is_layout_known = true;  // false: it is the usual one, as nothing speaks for any
  std::vector<std::string> damage;  // what could not be read, in words
};

// What to know about sizes when the layout is not known.
inline constexpr char kUnknownLayout[] =
    "too little lies side by side in it to tell how objects were laid out: sizes are "
    "those "
    "with compressed references and class pointers";

HeapCensus TakeCensus(const DumpFile& file, const HeapDump& dump);

// `ids`: of all objects, in the order of the file.
HeapCensus TakeCensus(const DumpFile& file, const HeapDump& dump, Column<uint64_t>* ids);

// Walks over all of a dump; gives what could not be read of it.
template <typename Visitor>
std::vector<std::string> WalkDump(const DumpFile& file,
                                  const HeapDump& dump,
                                  Visitor& visitor) {
  std::vector<std::string> damage;
  for (const HeapRange& range : dump.ranges) {
    const WalkResult walk = WalkHeap(range, file.id_bytes(), visitor);
    if (walk.end != WalkEnd::kWhole)
      damage.push_back(file.DescribeWalk(walk));
  }
  return damage;
}

}  // namespace heapprofd::hprof
