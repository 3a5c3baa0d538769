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

namespace heapprofd {
namespace {

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
  std::unique_ptr<RuntimeDirectory> directory(new RuntimeDirectory(path));
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

// Root's is open to all users, since their programs report there; others' to nobody else.
Status RuntimeDirectory::MakeDirectory() {
  const mode_t mode = geteuid() == 0 ? 0755 : 0700;
  if (mkdir(path_.c_str(), mode) != 0 && errno != EEXIST)
    return Status::FromErrno("cannot create " + path_, errno);

  struct stat status {};

  if (lstat(path_.c_str(), &status) != 0)
    return Status::FromErrno("cannot use " + path_, errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid())
    return Status(StatusCode::kInvalidArgument,
                  "cannot use " + path_ +
                      ": it is no directory of this user; remove it, or set " +
                      kDirectoryVariable);
  if (chmod(path_.c_str(), mode) != 0)
    return Status::FromErrno("cannot set the mode of " + path_, errno);
  return {};
}

Status RuntimeDirectory::TakeLock() {
  const std::string name = path_ + "/lock";
  lock_ = ScopedFd(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_.valid())
    return Status::FromErrno("cannot open " + name, errno);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return Status(StatusCode::kUnavailable,
                  "cannot start in " + path_ + ": another heapprofd runs there");
  return {};
}

// The page outlives the service, so that the next one reaches whoever maps it. Nobody may
// shorten it under the programs that do: it is written through this mapping only.
Status RuntimeDirectory::MapWakePage() {
  const std::string name = path_ + kWakeName;
  chmod(name.c_str(), 0600);
  const ScopedFd fd(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid())
    return Status::FromErrno("cannot open " + name, errno);

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
