// The path by which this process reaches a file that it has open, whatever the file's own
// name stands for by now.
#pragma once

#include <string>

namespace heapprofd {

inline std::string FdPath(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace heapprofd
