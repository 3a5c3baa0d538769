// What is in an object: the values of its fields, the static ones of a class, the
// elements of an array.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hprof/load_graph.h"

namespace heapprofd::hprof {

struct ObjectValue {
  std::string name;        // "java.util.HashMap.size", "[12]"
  uint8_t type = kObject;  // basic type
  std::string text;        // of a number, as the language writes it
  uint64_t reference = 0;  // id of what it refers to; 0: null
};

struct ObjectValues {
  std::vector<ObjectValue> values;
  uint64_t count = 0;    // with those beyond the most that are wanted
  bool has_data = true;  // false: an array whose elements the dump does not have
};

// The first `most` of the object with this id; nullopt: the dump has none. A dump may
// have it twice: the first one counts.
std::optional<ObjectValues> ValuesOf(const DumpFile& file,
                                     const HeapDump& dump,
                                     const ClassTable& classes,
                                     uint64_t id,
                                     size_t most);

// "int" of kInt.
const char* TypeName(uint8_t type);

}  // namespace heapprofd::hprof
