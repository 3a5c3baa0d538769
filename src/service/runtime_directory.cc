#include "service/runtime_directory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/fd_path.h"
#include "base/files/folder.h"

namespace heapprofd {
namespace {

constexpr char kLockName[] = "/lock";

std::string UserDirectory() {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/')
    return std::string(runtime) + kUserSubdirectory;
  return kUserFallback + std::to_string(geteuid());
}

// Nobody else can have put anything there.
bool IsPrivate(const std::string& path) {
  struct stat status {};

  constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & kOthersMayWrite) == 0;
}

}  // namespace

std::string ServiceDirectory() {
  const char* directory = getenv(kDirectoryVariable);
  if (directory != nullptr && *directory == '/')
    return directory;
  if (geteuid() == 0)
    return kSystemDirectory;
  const std::string own = UserDirectory();
  return IsPrivate(own) ? own : "";
}

std::string OwnServiceDirectory() {
  const char* directory = getenv(kDirectoryVariable);
  if (directory != nullptr && *directory == '/')
    return directory;
  return geteuid() == 0 ? kSystemDirectory : UserDirectory();
}

Result<std::unique_ptr<RuntimeDirectory>> RuntimeDirectory::Open(
    const std::string& path) {
  const size_t end = path.find_last_not_of('/');  // npos: it is the root directory
  std::unique_ptr<RuntimeDirectory> directory(
      new RuntimeDirectory(end == std::string::npos ? "/" : path.substr(0, end + 1)));
  HPD_TRY(directory->MakeDirectory());
  HPD_TRY(directory->TakeLock());
  HPD_TRY(directory->MapWakePage());
  return directory;
}

RuntimeDirectory::~RuntimeDirectory() {
  if (wake_ == nullptr)
    return;
  if (lock_.valid())  // else the page may be another service's already
    SetRecordings(0);
  munmap(wake_, kWakePageSize);
}

FilePlace RuntimeDirectory::socket_place() const {
  return {FdPath(directory_.get()) + kSocketName, path_ + kSocketName};
}

// Root's is open to all users, since their programs report there; others' to nobody else.
Status RuntimeDirectory::MakeDirectory() {
  const mode_t mode = geteuid() == 0 ? 0755 : 0700;
  const SplitPath split = Split(path_);
  HPD_TRY_ASSIGN(const ScopedFd parent,
                 OpenUnalterableFolder(split.folder, "cannot use " + path_));
  const bool is_new = mkdirat(parent.get(), split.name.c_str(), mode) == 0;
  if (!is_new && errno != EEXIST)
    return Status::FromErrno("cannot create " + path_, errno);
  directory_ = ScopedFd(openat(parent.get(), split.name.c_str(),
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));

  struct stat status {};

  const bool is_directory = directory_.valid() && fstat(directory_.get(), &status) == 0;
  if (!is_directory && errno != ENOTDIR && errno != ELOOP)
    return Status::FromErrno("cannot use " + path_, errno);
  if (!is_directory || status.st_uid != geteuid())
    return Status(StatusCode::kInvalidArgument,
                  "cannot use " + path_ +
                      ": it is no directory of this user; remove it, or set " +
                      kDirectoryVariable);
  if (!is_new)
    HPD_TRY(CheckContents((status.st_mode & (S_IWGRP | S_IWOTH)) != 0));
  if (fchmod(directory_.get(), mode) != 0)
    return Status::FromErrno("cannot set the mode of " + path_, errno);
  return {};
}

// A directory that is there for something else would get another mode, and lose a file
// that is called as our socket: it has files, and not the lock of a service. `was_open`:
// others could write there, a lock too.
Status RuntimeDirectory::CheckContents(bool was_open) const {
  struct stat status {};

  const bool has_lock =
      fstatat(directory_.get(), &kLockName[1], &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISREG(status.st_mode) && status.st_uid == geteuid();
  const bool must_be_empty = was_open && geteuid() == 0;
  if (has_lock && !must_be_empty)
    return {};
  std::error_code error;
  for (std::filesystem::directory_iterator it(FdPath(directory_.get()), error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = "/" + it->path().filename().string();
    // Programs make the wake page from drafts that are called wake.TID.
    if (!must_be_empty &&
        (name == kLockName || name == kSocketName || name.starts_with(kWakeName)))
      continue;
    return Status(StatusCode::kInvalidArgument,
                  "cannot use " + path_ + ": it has files already, such as " +
                      name.substr(1) +
                      "; name a new or empty directory, by --directory or "
                      "HEAPPROFD_DIRECTORY");
  }
  return {};
}

// One of the directory's regular files, which belongs to this user. It is made (0600) when it
// is missing.
Result<ScopedFd> RuntimeDirectory::OpenFile(const std::string& name) const {
  const std::string path = path_ + name;
  const std::string place = FdPath(directory_.get()) + name;
  ScopedFd made(
      open(place.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (made.valid())
    return made;
  const ScopedFd found(open(place.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));

  struct stat status {};

  if (!found.valid() || fstat(found.get(), &status) != 0)
    return Status::FromErrno("cannot open " + path, errno);
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid())
    return Status(
        StatusCode::kInvalidArgument,
        "cannot use " + path + ": it is no regular file of this user; remove it");
  const std::string link = FdPath(found.get());
  chmod(link.c_str(), 0600);
  ScopedFd fd(open(link.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid())
    return Status::FromErrno("cannot open " + path, errno);
  return fd;
}

Status RuntimeDirectory::TakeLock() {
  HPD_TRY_ASSIGN(lock_, OpenFile(kLockName));
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return Status(StatusCode::kUnavailable,
                  "cannot start in " + path_ + ": another heapprofd runs there");
  return {};
}

// The page outlives the service, so that the next one reaches whoever maps it. Nobody may
// shorten it under the programs that do: it is written through this mapping only.
Status RuntimeDirectory::MapWakePage() {
  const std::string name = path_ + kWakeName;
  HPD_TRY_ASSIGN(const ScopedFd fd, OpenFile(kWakeName));

  struct stat status {};

  if (fstat(fd.get(), &status) != 0 ||
      (status.st_size < static_cast<off_t>(kWakePageSize) &&
       ftruncate(fd.get(), kWakePageSize) != 0))
    return Status::FromErrno("cannot size " + name, errno);
  fchmod(fd.get(), 0444);
  void* page =
      mmap(nullptr, kWakePageSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED)
    return Status::FromErrno("cannot map " + name, errno);
  wake_ = static_cast<WakePage*>(page);
  return {};
}

void RuntimeDirectory::GiveUpLock() {
  flock(lock_.get(), LOCK_UN);  // for every copy of the descriptor
  lock_.reset();
}

void RuntimeDirectory::Wake() {
  wake_->generation.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &wake_->generation, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void RuntimeDirectory::SetRecordings(size_t count) {
  wake_->recordings.store(static_cast<uint32_t>(count), std::memory_order_release);
}

}  // namespace heapprofd
