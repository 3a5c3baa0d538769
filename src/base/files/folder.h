// Directories that files are made in, looked up once: a path can lead elsewhere the second
// time, when others may rename what is on the way.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

inline constexpr int kMostLinks = 40;  // followed of one path, as the kernel has it

// In a user name space of his own the machine's root is nobody, and who is root there may
// do no more than others outside.
bool IsRootUser(uid_t user);

// Whose a link is: root's own may have been renamed by whoever owns its directory.
uid_t LinkOwner(const struct stat& link, const struct stat& folder);

// Opens it (O_PATH). `failure` begins the message: "cannot create /x/file". Root follows
// no link of another user's, or in a directory of another's, unless that leads to one of
// this user's: he could have root write where he may not. What procfs leads on by
// (/proc/PID/fd) is followed.
Result<ScopedFd> OpenFolder(const std::string& path, const std::string& failure);

// Opens `path` like OpenFolder. As root it refuses a directory that other users can alter:
// one that they can write to or rename, or that their link leads to.
Result<ScopedFd> OpenUnalterableFolder(const std::string& path,
                                       const std::string& failure);

// The directory that a path names its last part in, "." where it names none, and that
// part, "." where it ends with a slash.
struct SplitPath {
  std::string folder;
  std::string name;
};

SplitPath Split(const std::string& path);

// Nobody but this process's user and root can put something else in place of what this
// user makes in the directory, nor lead its path elsewhere, nor make it where it is not.
bool IsUnalterable(const std::string& directory);

}  // namespace heapprofd
