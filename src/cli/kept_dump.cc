#include "cli/kept_dump.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/fd_path.h"
#include "base/files/folder.h"
#include "base/random_seed.h"
#include "base/text.h"
#include "hotspot/dump_room.h"

namespace heapprofd {
namespace {

constexpr mode_t kOwnersAlone = 0600;  // a dump has all the secrets of a program

Status IsThere(const std::string& path) {
  return Invalid("cannot keep the dump as " + path +
                 ": there is something of this name; name another file");
}

}  // namespace

KeptDump::KeptDump(const std::string& path, ScopedFd directory)
    : path_(path), directory_(std::move(directory)), name_(FileName(path)) {}

KeptDump::KeptDump(KeptDump&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      directory_(std::move(other.directory_)),
      name_(std::move(other.name_)),
      stand_in_(std::exchange(other.stand_in_, {})) {}

KeptDump::~KeptDump() {
  if (!stand_in_.empty())
    unlinkat(directory_.get(), stand_in_.c_str(), 0);
}

Result<KeptDump> KeptDump::Create(const std::string& path) {
  if (path.empty()) {
    ScopedFd memory(memfd_create("heap dump", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory.valid())
      return Status::FromErrno("cannot make room for the dump in memory", errno);
    return KeptDump(std::move(memory));
  }

  HPD_TRY_ASSIGN(ScopedFd directory,
                 OpenFolder(Split(path).folder, "cannot keep the dump as " + path));
  KeptDump dump(path, std::move(directory));
  HPD_TRY(dump.Open());
  return dump;
}

Status KeptDump::Open() {
  struct stat status {};

  if (name_.empty() ||
      fstatat(directory_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    return IsThere(path_);
  fd_ = ScopedFd(
      openat(directory_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, kOwnersAlone));
  if (!fd_.valid() && (errno == EOPNOTSUPP || errno == EISDIR)) {
    const std::string stand_in =
        "." + name_ + "." + HexEncode(std::to_string(RandomSeed())).substr(0, 8);
    fd_ = ScopedFd(openat(directory_.get(), stand_in.c_str(),
                          O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC,
                          kOwnersAlone));
    if (fd_.valid())
      stand_in_ = stand_in;
  }
  return fd_.valid() ? Status()
                     : Status::FromErrno("cannot keep the dump as " + path_, errno);
}

uint64_t KeptDump::room() const {
  return path_.empty() ? RoomInMemory("self") : RoomOnDisk(fd_.get());
}

Result<ScopedFd> KeptDump::Keep() {
  if (path_.empty()) {
    if (fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) != 0)
      return Status::FromErrno("cannot seal the dump", errno);
    return std::move(fd_);
  }
  // A full disk of another machine's may show only now.
  if (fsync(fd_.get()) == 0 && GiveName())
    return std::move(fd_);
  return errno == EEXIST ? IsThere(path_)
                         : Status::FromErrno("cannot keep the dump as " + path_, errno);
}

// False: errno says why. What has this name by now stays.
bool KeptDump::GiveName() {
  const int to = directory_.get();
  if (stand_in_.empty()) {
    const std::string link = FdPath(fd_.get());
    return linkat(AT_FDCWD, link.c_str(), to, name_.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }
  bool has_name =
      renameat2(to, stand_in_.c_str(), to, name_.c_str(), RENAME_NOREPLACE) == 0;
  if (!has_name && errno == EINVAL) {  // NFS cannot, but can link
    has_name = linkat(to, stand_in_.c_str(), to, name_.c_str(), 0) == 0;
    if (has_name)
      unlinkat(to, stand_in_.c_str(), 0);
  }
  if (has_name)
    stand_in_.clear();
  return has_name;
}

}  // namespace heapprofd
