#include "base/files/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace heapprofd {

int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return 0;
}

}  // namespace heapprofd
