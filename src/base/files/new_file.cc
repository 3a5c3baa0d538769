#include "base/files/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/fd_path.h"

namespace heapprofd {
namespace {

constexpr int kMostNames = 100;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

NewFile::NewFile(ScopedFd fd, std::string path, std::string stand_in)
    : fd_(std::move(fd)), path_(std::move(path)), stand_in_(std::move(stand_in)) {}

NewFile::NewFile(NewFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      stand_in_(std::exchange(other.stand_in_, {})) {}

NewFile::~NewFile() {
  if (!stand_in_.empty())
    unlink(stand_in_.c_str());
}

Result<NewFile> NewFile::Create(const std::string& path) {
  ScopedFd nameless(open(FolderOf(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (nameless.valid())
    return NewFile(std::move(nameless), path, "");
  std::string stand_in = path + ".XXXXXX";
  ScopedFd named(mkostemp(stand_in.data(), O_CLOEXEC));
  if (!named.valid())
    return Status::FromErrno("cannot create " + path, errno);
  return NewFile(std::move(named), path, std::move(stand_in));
}

int NewFile::Link(const std::string& name) const {
  const bool is_linked = linkat(AT_FDCWD, FdPath(fd_.get()).c_str(), AT_FDCWD,
                                name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  return is_linked ? 0 : errno;
}

Status NewFile::Appear() {
  // Links replace nothing: where there is a file it is done by renaming.
  int error = stand_in_.empty() ? Link(path_) : EEXIST;
  if (error == 0)
    return {};
  for (int i = 0; i < kMostNames && error == EEXIST && stand_in_.empty(); ++i) {
    const std::string name =
        path_ + "." + std::to_string(getpid()) + "." + std::to_string(i);
    error = Link(name);
    if (error == 0)
      stand_in_ = name;
  }
  if (stand_in_.empty())
    return Status::FromErrno("cannot create " + path_, error);
  if (rename(stand_in_.c_str(), path_.c_str()) != 0)
    return Status::FromErrno("cannot rename " + stand_in_, errno);
  stand_in_.clear();
  return {};
}

}  // namespace heapprofd
