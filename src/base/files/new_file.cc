#include "base/files/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/fd_path.h"
#include "base/files/folder.h"

namespace heapprofd {
namespace {

constexpr int kMostNames = 100;

}  // namespace

NewFile::NewFile(std::string path, std::string name, ScopedFd folder)
    : path_(std::move(path)), name_(std::move(name)), folder_(std::move(folder)) {}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      name_(std::move(other.name_)),
      folder_(std::move(other.folder_)),
      fd_(std::move(other.fd_)),
      stand_in_(std::exchange(other.stand_in_, {})) {}

NewFile::~NewFile() {
  if (!stand_in_.empty())
    unlinkat(folder_.get(), stand_in_.c_str(), 0);
}

Result<NewFile> NewFile::Create(const FilePlace& place) {
  const std::string failure = "cannot create " + place.path;
  SplitPath split = Split(place.at);
  HPD_TRY_ASSIGN(ScopedFd folder, OpenFolder(split.folder, failure));
  NewFile file(place.path, std::move(split.name), std::move(folder));
  if (!file.Open())
    return Status::FromErrno(failure, errno);
  return file;
}

bool NewFile::Open() {
  fd_ = ScopedFd(openat(folder_.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (fd_.valid())
    return true;
  std::string path = FdPath(folder_.get()) + "/" + name_ + ".XXXXXX";
  fd_ = ScopedFd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd_.valid())
    return false;
  stand_in_ = path.substr(path.rfind('/') + 1);
  return true;
}

int NewFile::Link(const std::string& name) const {
  const bool is_linked = linkat(AT_FDCWD, FdPath(fd_.get()).c_str(), folder_.get(),
                                name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  return is_linked ? 0 : errno;
}

Status NewFile::Appear() {
  // Links replace nothing: where there is a file it is done by renaming.
  int error = stand_in_.empty() ? Link(name_) : EEXIST;
  if (error == 0)
    return {};
  for (int i = 0; i < kMostNames && error == EEXIST && stand_in_.empty(); ++i) {
    const std::string name =
        name_ + "." + std::to_string(getpid()) + "." + std::to_string(i);
    error = Link(name);
    if (error == 0)
      stand_in_ = name;
  }
  if (stand_in_.empty())
    return Status::FromErrno("cannot create " + path_, error);
  if (renameat(folder_.get(), stand_in_.c_str(), folder_.get(), name_.c_str()) != 0)
    return Status::FromErrno("cannot create " + path_, errno);
  stand_in_.clear();
  return {};
}

}  // namespace heapprofd
