// Files and directories that nobody else can put something else in place of: root is led
// to other users' places by paths, links and variables.
#pragma once

#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

// `path` is a directory (links are followed) that belongs to this process's user.
bool IsOwnDirectory(const std::string& path);

// The same, and nobody else may make or remove files there.
bool IsPrivateDirectory(const std::string& path);

// Creates the file (0600), or empties the one that is there. Root does not follow a link
// at its end, and empties no file of another user's.
Result<ScopedFd> OpenForWriting(const std::string& path);

}  // namespace heapprofd
