#include "cli/record/output_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

#include "base/fd_path.h"
#include "base/files/folder.h"
#include "base/files/own_file.h"
#include "base/files/temporary_directory.h"

namespace heapprofd {
namespace {

// Whoever may change the directory decides where root's files go, and who reads them.
Status CheckForRoot(const OutputDirectory& directory) {
  if (geteuid() != 0 || IsPrivateDirectory(directory.fd()))
    return {};
  return Invalid("cannot use output directory " + directory.path() +
                 ": other users may change it; name one that is root's alone");
}

Status CheckEmpty(const OutputDirectory& directory) {
  ScopedFd fd(openat(directory.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(
      fd.valid() ? fdopendir(fd.get()) : nullptr, closedir);
  if (entries == nullptr)
    return Status::FromErrno("cannot use output directory " + directory.path(), errno);
  static_cast<void>(fd.release());  // is the entries' now
  errno = 0;
  while (const dirent* const entry = readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..")
      return Invalid("cannot use output directory " + directory.path() +
                     ": it is not empty; name another one with --output");
  }
  return errno == 0 ? Status()
                    : Status::FromErrno("cannot use output directory " + directory.path(),
                                        errno);
}

std::string WithoutSlashesAtEnd(std::string path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.pop_back();
  return path;
}

// One that the user has chosen is used or named, and no other in its place.
std::string ParentOfFresh() {
  const char* const chosen = getenv("TMPDIR");
  return chosen != nullptr && *chosen != 0 ? chosen : TemporaryDirectory();
}

constexpr char kLatest[] = "heap_profile-latest";

// What the link in the directory says; "": there is none.
std::string LatestIn(int parent) {
  std::array<char, PATH_MAX> text{};
  const ssize_t size = readlinkat(parent, kLatest, text.data(), text.size());
  return {text.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

// A convenience only: another user's link of this name stays as it is, and false. Root has
// none where others could put theirs in its place. "": there is to be none.
bool PointLatestTo(const std::string& path, int parent) {
  if (geteuid() == 0 && !IsPrivateDirectory(parent))
    return false;
  unlinkat(parent, kLatest, 0);
  const bool is_made = !path.empty() && symlinkat(path.c_str(), parent, kLatest) == 0;
  errno = 0;
  return is_made;
}

}  // namespace

Result<OutputDirectory> OutputDirectory::MakeOrOpen(const std::string& path) {
  const std::string failure = "cannot create output directory " + path;
  const SplitPath split = Split(WithoutSlashesAtEnd(path));
  HPD_TRY_ASSIGN(ScopedFd parent, OpenFolder(split.folder, failure));
  const bool is_new = mkdirat(parent.get(), split.name.c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST)
    return Status::FromErrno(failure, errno);

  struct stat status {};

  // In place of what was made just now others may have put a link already.
  if (!is_new && (fstatat(parent.get(), split.name.c_str(), &status, 0) != 0 ||
                  !S_ISDIR(status.st_mode)))
    return Invalid("cannot use output directory " + path +
                   ": it is no directory; name another one with --output");
  const std::string cannot_use = "cannot use output directory " + path;
  ScopedFd opened(openat(parent.get(), split.name.c_str(),
                         O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened.valid() && !is_new) {
    HPD_TRY_ASSIGN(opened, OpenFolder(path, cannot_use));
  }
  if (!opened.valid())
    return Status::FromErrno(cannot_use, errno);
  OutputDirectory directory(std::move(opened), path);
  directory.parent_ = std::move(parent);
  directory.name_ = split.name;
  const Status allowed = CheckForRoot(directory);
  if (!allowed.ok() && is_new)
    directory.RemoveIfEmpty();
  HPD_TRY(allowed);
  return directory;
}

Result<OutputDirectory> OutputDirectory::MakeFresh(bool with_link) {
  const std::string base = ParentOfFresh();
  const std::string failure =
      "cannot create an output directory in " + base + " (name another with --output)";
  HPD_TRY_ASSIGN(ScopedFd parent, OpenFolder(base, failure));
  std::string made = FdPath(parent.get()) + "/heap_profile-XXXXXX";
  if (mkdtemp(made.data()) == nullptr)
    return Status::FromErrno(failure, errno);
  std::string name = made.substr(made.rfind('/') + 1);
  ScopedFd opened(
      openat(parent.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened.valid())
    return Status::FromErrno(failure, errno);
  OutputDirectory directory(std::move(opened), base + "/" + name);
  HPD_TRY(CheckForRoot(directory));
  if (with_link) {
    std::string before = LatestIn(parent.get());
    if (PointLatestTo(directory.path(), parent.get()))
      directory.latest_before_ = std::move(before);
  }
  directory.parent_ = std::move(parent);
  directory.name_ = std::move(name);
  return directory;
}

Result<OutputDirectory> OutputDirectory::Use(const std::string& requested) {
  return requested.empty() ? MakeFresh(/*with_link=*/false) : MakeOrOpen(requested);
}

Result<OutputDirectory> OutputDirectory::Create(const std::string& requested) {
  HPD_TRY_ASSIGN(OutputDirectory directory, requested.empty()
                                                ? MakeFresh(/*with_link=*/true)
                                                : MakeOrOpen(requested));
  // Also of one that was made: others may have put another one in its place.
  HPD_TRY(CheckEmpty(directory));
  return directory;
}

FilePlace OutputDirectory::Place(const std::string& name) const {
  return {FdPath(fd()) + "/" + name, path_ + "/" + name};
}

std::string OutputDirectory::PrefixForPrograms() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd()) + "/";
}

std::string OutputDirectory::PathForPrograms(const std::string& name) const {
  if (geteuid() == 0 && !IsUnalterable(path_))
    return PrefixForPrograms() + name;
  return name.empty() ? path_ : path_ + "/" + name;
}

std::string OutputDirectory::Told(std::string text) const {
  for (const std::string& prefix : {PrefixForPrograms(), FdPath(fd()) + "/"}) {
    for (size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;
         at += path_.size() + 1)
      text.replace(at, prefix.size(), path_ + "/");
  }
  return text;
}

void OutputDirectory::Remove() const {
  unlinkat(fd(), "raw-trace", 0);
  RemoveIfEmpty();
}

void OutputDirectory::RemoveIfEmpty() const {
  if (!parent_.valid() || unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR) != 0)
    return;
  if (latest_before_ && LatestIn(parent_.get()) == path_)
    PointLatestTo(*latest_before_, parent_.get());
}

}  // namespace heapprofd
