// Programs whose executable has a malloc of its own, as with an allocator that is linked
// statically: the program's calls go there and never reach a preloaded library.
#pragma once

#include <sys/types.h>

#include <map>
#include <utility>

#include "engine/target/target.h"

namespace heapprofd {

class OwnMallocs {
 public:
  // By the dynamic symbols of its executable, whose file is looked into once. False, too,
  // when that cannot be opened, or when there were many others.
  bool IsIn(const Target& target);

 private:
  std::map<std::pair<dev_t, ino_t>, bool> seen_;
};

}  // namespace heapprofd
