#include "tables/object_contents.h"

namespace heapprofd {

const char* NameOf(NumberType type) {
  constexpr const char* kNames[] = {"boolean", "byte", "char",  "short",
                                    "int",     "long", "float", "double"};
  return kNames[static_cast<uint8_t>(type)];
}

}  // namespace heapprofd
