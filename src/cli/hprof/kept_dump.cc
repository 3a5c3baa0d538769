#include "cli/hprof/kept_dump.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "hotspot/dump_room.h"

namespace heapprofd {
namespace {

constexpr mode_t kOwnersAlone = 0600;  // a dump has all the secrets of a program

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

Status IsThere(const std::string& path) {
  return Invalid("cannot keep the dump as " + path +
                 ": there is something of this name; name another file");
}

}  // namespace

KeptDump::KeptDump(ScopedFd fd, std::string path, bool has_name)
    : fd_(std::move(fd)), path_(std::move(path)), has_name_(has_name) {}

KeptDump::KeptDump(KeptDump&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      has_name_(std::exchange(other.has_name_, false)) {}

KeptDump::~KeptDump() {
  if (has_name_)
    unlink(path_.c_str());
}

Result<KeptDump> KeptDump::Create(const std::string& path) {
  if (path.empty()) {
    ScopedFd memory(memfd_create("heap dump", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory.valid())
      return Status::FromErrno("cannot make room for the dump in memory", errno);
    return KeptDump(std::move(memory), "", false);
  }

  struct stat status {};

  if (lstat(path.c_str(), &status) == 0)
    return IsThere(path);
  ScopedFd nameless(
      open(DirectoryOf(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOwnersAlone));
  if (nameless.valid())
    return KeptDump(std::move(nameless), path, false);
  if (errno != EOPNOTSUPP && errno != EISDIR)
    return Status::FromErrno("cannot keep the dump as " + path, errno);
  // A file system that has none without names.
  ScopedFd named(open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC,
                      kOwnersAlone));
  if (!named.valid())
    return Status::FromErrno("cannot keep the dump as " + path, errno);
  return KeptDump(std::move(named), path, true);
}

uint64_t KeptDump::room() const {
  return path_.empty() ? RoomInMemory() : RoomOnDisk(fd_.get());
}

Result<ScopedFd> KeptDump::Keep() {
  if (path_.empty()) {
    if (fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) != 0)
      return Status::FromErrno("cannot seal the dump", errno);
    return std::move(fd_);
  }
  if (std::exchange(has_name_, false))
    return std::move(fd_);
  const std::string link = "/proc/self/fd/" + std::to_string(fd_.get());
  if (linkat(AT_FDCWD, link.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0)
    return std::move(fd_);
  return errno == EEXIST ? IsThere(path_)
                         : Status::FromErrno("cannot keep the dump as " + path_, errno);
}

}  // namespace heapprofd
