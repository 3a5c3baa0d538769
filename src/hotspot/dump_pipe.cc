#include "hotspot/dump_pipe.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random_seed.h"

namespace heapprofd {
namespace {

constexpr char kName[] = "dump.hprof";
constexpr int kPipeBytes = 1 << 20;  // the most that anybody may ask for
constexpr size_t kMostNames = 1000;

std::vector<std::string> NamesIn(int directory) {
  const int listed = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(
      listed >= 0 ? fdopendir(listed) : nullptr, closedir);
  std::vector<std::string> names;
  while (const dirent* entry = entries != nullptr && names.size() < kMostNames
                                   ? readdir(entries.get())
                                   : nullptr)
    names.emplace_back(entry->d_name);
  return names;
}

}  // namespace

DumpPipe::DumpPipe(int temporary, std::string name)
    : temporary_(temporary),
      name_(std::move(name)),
      path_("/tmp/" + name_ + "/" + kName) {}

DumpPipe::DumpPipe(DumpPipe&& other) noexcept
    : temporary_(other.temporary_),
      name_(std::exchange(other.name_, {})),
      path_(std::move(other.path_)),
      directory_(std::move(other.directory_)),
      fd_(std::move(other.fd_)) {}

Status DumpPipe::Remove() {
  const std::string name = std::exchange(name_, {});
  if (name.empty())
    return {};
  constexpr int kAttempts = 100;  // files may come to be between a look and the removal
  int error = ENOTEMPTY;
  for (int i = 0; i < kAttempts && error == ENOTEMPTY; ++i) {
    for (const std::string& entry : NamesIn(directory_.get()))
      unlinkat(directory_.get(), entry.c_str(), 0);
    error = unlinkat(temporary_, name.c_str(), AT_REMOVEDIR) == 0 ? 0 : errno;
  }
  fd_.reset();  // behind its name: whoever has found that still has a reader
  if (error == 0 || error == ENOENT)
    return {};
  return Status::FromErrno("its /tmp/" + name + " cannot be removed", error);
}

uint64_t DumpPipe::BytesBeside() const {
  constexpr uint64_t kBlock = 512;
  uint64_t bytes = 0;
  for (const std::string& entry : NamesIn(directory_.get())) {
    struct stat status {};

    if (fstatat(directory_.get(), entry.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode))
      bytes += static_cast<uint64_t>(status.st_blocks) * kBlock;
  }
  return bytes;
}

std::string DumpPipe::FreshName(pid_t pid) {
  return ".heap_profile_" + std::to_string(pid) + "_" + std::to_string(RandomSeed());
}

Status DumpPipe::RemoveLeft(int temporary, const std::string& name) {
  DumpPipe left(temporary, name);
  left.Open();
  return left.Remove();
}

void DumpPipe::Open() {
  directory_ = ScopedFd(
      openat(temporary_, name_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  fd_ =
      ScopedFd(directory_.valid() ? openat(directory_.get(), kName,
                                           O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
                                  : -1);
}

Result<DumpPipe> DumpPipe::Create(int temporary, const std::string& name) {
  if (mkdirat(temporary, name.c_str(), 0700) != 0)
    return Status::FromErrno("a directory in its /tmp cannot be made", errno);
  DumpPipe pipe(temporary, name);
  const ScopedFd directory(
      openat(temporary, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid() || mkfifoat(directory.get(), kName, 0600) != 0)
    return Status::FromErrno("a pipe in its /tmp cannot be made", errno);
  pipe.Open();

  struct stat status {};

  if (!pipe.fd_.valid() || fstat(pipe.fd_.get(), &status) != 0 ||
      !S_ISFIFO(status.st_mode))
    return Status::FromErrno("a pipe in its /tmp cannot be opened", errno);
  (void)fcntl(pipe.fd_.get(), F_SETPIPE_SZ, kPipeBytes);  // fewer turns, if we may
  return pipe;
}

}  // namespace heapprofd
