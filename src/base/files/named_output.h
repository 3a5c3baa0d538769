// What a user has named for a result. A file there is replaced as a whole; what is no file
// (a device, a pipe) is written into and stays what it is.
#pragma once

#include <optional>
#include <string>

#include "base/files/new_file.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

struct NamedOutput {
  std::optional<NewFile> file;
  ScopedFd stream;  // where there is no file; waits for a pipe's reader to come
};

// A link is followed, and what it leads to is replaced, unless another user has made it or
// may have put it there. Root writes into no device or pipe of another user's. What the
// kernel shows of this process's descriptors (/dev/stdout, /dev/fd/3) is that descriptor.
Result<NamedOutput> OpenNamedOutput(const std::string& path);

// Its stream alone. Invalid: a file is there, or nothing; it is not touched.
Result<ScopedFd> OpenNamedStream(const std::string& path);

}  // namespace heapprofd
