// Files and directories that nobody else can put something else in place of: root is led
// to other users' places by paths, links and variables.
#pragma once

#include <string>

#include "base/files/file_place.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

// `path` is a directory (links are followed) that belongs to this process's user.
bool IsOwnDirectory(const std::string& path);

// The same of an open one, and nobody else may make or remove files there.
bool IsPrivateDirectory(int fd);

// Creates the file (0600), or empties the one that is there. Root follows no link of
// another user's (OpenFolder) and none at its end, and empties no file of another user's,
// nor one that has more names where others may make some.
Result<ScopedFd> OpenForWriting(const FilePlace& place);

// Opens the regular file that `path` leads to, for reading. The kind is known before: to open
// a device, a FIFO or a tape is an act of its own. No link of the kernel's (/proc/PID/fd) is
// followed, and none at the end of the path if `flags` has O_NOFOLLOW. Invalid: there is no
// such file, which errno says (EINVAL: it is of another kind).
ScopedFd OpenRegular(const std::string& path, int flags = 0);

}  // namespace heapprofd
