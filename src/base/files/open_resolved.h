// openat2: opens what a path leads to, within limits of where that may be.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/scoped_fd.h"

namespace heapprofd {

// `flags`: O_...; `resolve`: RESOLVE_... Invalid, with errno: it cannot be opened so.
inline ScopedFd OpenResolved(int directory,
                             const std::string& path,
                             uint64_t flags,
                             uint64_t resolve) {
  open_how how{};
  how.flags = flags;
  how.resolve = resolve;
  return ScopedFd(
      static_cast<int>(syscall(SYS_openat2, directory, path.c_str(), &how, sizeof(how))));
}

}  // namespace heapprofd
