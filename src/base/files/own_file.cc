#include "base/files/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/fd_path.h"
#include "base/files/folder.h"
#include "base/files/open_resolved.h"

namespace heapprofd {
namespace {

Status Empty(const ScopedFd& fd, const FilePlace& place) {
  struct stat status {};

  if (fstat(fd.get(), &status) != 0 ||
      (S_ISREG(status.st_mode) && ftruncate(fd.get(), 0) != 0))
    return Status::FromErrno("cannot empty " + place.path, errno);
  return {};
}

Result<ScopedFd> OpenForRoot(const FilePlace& place, const std::string& failure) {
  const SplitPath split = Split(place.at);
  HPD_TRY_ASSIGN(const ScopedFd folder, OpenFolder(split.folder, failure));
  ScopedFd fd(openat(folder.get(), split.name.c_str(),
                     O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));

  struct stat status {};

  if (!fd.valid() && errno == ENXIO)
    return Status(StatusCode::kIo,
                  "cannot write " + place.path +
                      ": it is a pipe from which nobody reads; begin to read first");
  if (!fd.valid() || fstat(fd.get(), &status) != 0)
    return Status::FromErrno(failure, errno);
  if (status.st_uid != 0)
    return Status(StatusCode::kIo, "cannot write " + place.path +
                                       ": it belongs to user " +
                                       std::to_string(status.st_uid) +
                                       "; remove it, or name another file");
  if (S_ISREG(status.st_mode) && status.st_nlink > 1 && !IsPrivateDirectory(folder.get()))
    return Status(StatusCode::kIo,
                  "cannot write " + place.path +
                      ": it has other names, one of which another user may have made; "
                      "remove it, or name another file");
  HPD_TRY(Empty(fd, place));
  if (fcntl(fd.get(), F_SETFL, 0) != 0)  // what is opened is root's: it may wait
    return Status::FromErrno(failure, errno);
  return fd;
}

}  // namespace

bool IsOwnDirectory(const std::string& path) {
  struct stat status {};

  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid();
}

bool IsPrivateDirectory(int fd) {
  struct stat status {};

  return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

Result<ScopedFd> OpenForWriting(const FilePlace& place) {
  const std::string failure = "cannot create " + place.path;
  if (geteuid() == 0)
    return OpenForRoot(place, failure);
  ScopedFd fd(open(place.at.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid())
    return Status::FromErrno(failure, errno);
  HPD_TRY(Empty(fd, place));
  return fd;
}

ScopedFd OpenRegular(const std::string& path, int flags) {
  struct stat status {};

  const ScopedFd place =
      OpenResolved(AT_FDCWD, path, static_cast<uint64_t>(O_PATH | O_CLOEXEC | flags),
                   RESOLVE_NO_MAGICLINKS);
  if (!place.valid() || fstat(place.get(), &status) != 0)
    return {};
  if (!S_ISREG(status.st_mode)) {
    errno = S_ISLNK(status.st_mode) ? ELOOP : EINVAL;
    return {};
  }
  return ScopedFd(
      open(FdPath(place.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

}  // namespace heapprofd
