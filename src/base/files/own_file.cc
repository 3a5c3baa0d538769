#include "base/files/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace heapprofd {

bool IsOwnDirectory(const std::string& path) {
  struct stat status {};

  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid();
}

bool IsPrivateDirectory(const std::string& path) {
  struct stat status {};

  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

Result<ScopedFd> OpenForWriting(const std::string& path) {
  const int no_link = geteuid() == 0 ? O_NOFOLLOW : 0;
  ScopedFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | no_link, 0600));
  if (!fd.valid())
    return Status::FromErrno("cannot create " + path, errno);

  struct stat status {};

  if (fstat(fd.get(), &status) != 0)
    return Status::FromErrno("cannot create " + path, errno);
  if (geteuid() == 0 && status.st_uid != 0)
    return Status(StatusCode::kIo, "cannot write " + path + ": it belongs to user " +
                                       std::to_string(status.st_uid) +
                                       "; remove it, or name another file");
  if (S_ISREG(status.st_mode) && ftruncate(fd.get(), 0) != 0)
    return Status::FromErrno("cannot empty " + path, errno);
  return fd;
}

}  // namespace heapprofd
