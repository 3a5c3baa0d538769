#include "base/files/named_output.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <utility>

#include "base/fd_path.h"
#include "base/files/folder.h"

namespace heapprofd {
namespace {

// Where a path ends, links followed: a name in a directory, and what has that name.
struct PathEnd {
  ScopedFd folder;  // O_PATH
  std::string name;
  ScopedFd found;  // O_PATH; invalid: there is nothing

  struct stat status {};

  bool IsLink() const { return found.valid() && S_ISLNK(status.st_mode); }

  // No place for a file, when all links were followed.
  bool IsStream() const { return found.valid() && !S_ISREG(status.st_mode); }

  // The kernel's own: there is no text that it could be followed by.
  bool IsLinkOfProc() const {
    struct statfs system {};

    return IsLink() && fstatfs(found.get(), &system) == 0 &&
           system.f_type == PROC_SUPER_MAGIC;
  }
};

Result<PathEnd> LookUp(const std::string& path, const std::string& failure) {
  SplitPath split = Split(path);
  PathEnd end;
  HPD_TRY_ASSIGN(end.folder, OpenFolder(split.folder, failure));
  end.name = std::move(split.name);
  end.found = ScopedFd(
      openat(end.folder.get(), end.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const bool is_nothing = !end.found.valid() && errno == ENOENT;
  if (!is_nothing && (!end.found.valid() || fstat(end.found.get(), &end.status) != 0))
    return Status::FromErrno(failure, errno);
  return end;
}

Status CheckOwner(const PathEnd& link, const std::string& failure) {
  struct stat folder {};

  if (fstat(link.folder.get(), &folder) != 0)
    return Status::FromErrno(failure, errno);
  const uid_t owner = LinkOwner(link.status, folder);
  if (owner == geteuid() || IsRootUser(owner))
    return {};
  return Status(StatusCode::kInvalidArgument,
                failure + ": it is a link of user " + std::to_string(owner) +
                    "; remove it, or name what it leads to");
}

Result<PathEnd> FollowLinks(const std::string& path, const std::string& failure) {
  HPD_TRY_ASSIGN(PathEnd end, LookUp(path, failure));
  for (int links = 0; end.IsLink(); ++links) {
    HPD_TRY(CheckOwner(end, failure));
    if (end.IsLinkOfProc())
      break;
    std::array<char, PATH_MAX> text{};
    const ssize_t length = readlinkat(end.found.get(), "", text.data(), text.size());
    if (length < 0 || links == kMostLinks)
      return Status::FromErrno(failure, length < 0 ? errno : ELOOP);
    const std::string target(text.data(), static_cast<size_t>(length));
    HPD_TRY_ASSIGN(
        end,
        LookUp(target.starts_with('/') ? target : FdPath(end.folder.get()) + "/" + target,
               failure));
  }
  return end;
}

// -1: it is not the link of one of this process's descriptors.
int OwnDescriptor(const PathEnd& link) {
  struct stat folder {};

  struct stat own {};

  int fd = -1;
  const char* const name_end = link.name.data() + link.name.size();
  const bool is_own = fstat(link.folder.get(), &folder) == 0 &&
                      stat("/proc/self/fd", &own) == 0 && folder.st_dev == own.st_dev &&
                      folder.st_ino == own.st_ino;
  const auto [behind, error] = std::from_chars(link.name.data(), name_end, fd);
  return is_own && error == std::errc() && behind == name_end ? fd : -1;
}

// Where a shell's ">>" or another writer has got to, not the beginning of the file.
ScopedFd OpenStream(const PathEnd& end) {
  if (const int own = OwnDescriptor(end); own >= 0)
    return ScopedFd(fcntl(own, F_DUPFD_CLOEXEC, 0));
  if (end.IsLink())
    return ScopedFd(openat(end.folder.get(), end.name.c_str(),
                           O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC));
  // What was looked at, whatever has its name by now.
  return ScopedFd(open(FdPath(end.found.get()).c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
}

Result<ScopedFd> OpenOther(const PathEnd& end,
                           const std::string& path,
                           const std::string& failure) {
  if (S_ISDIR(end.status.st_mode))
    return Status(StatusCode::kIo, failure + ": it is a directory; name a file in it");
  if (geteuid() == 0 && !end.IsLink() && !IsRootUser(end.status.st_uid))
    return Status(StatusCode::kIo, "cannot write " + path + ": it belongs to user " +
                                       std::to_string(end.status.st_uid) +
                                       "; remove it, or name another file");
  ScopedFd stream = OpenStream(end);
  if (!stream.valid())
    return Status::FromErrno("cannot write " + path, errno);
  return stream;
}

}  // namespace

Result<NamedOutput> OpenNamedOutput(const std::string& path) {
  const std::string failure = "cannot create " + path;
  HPD_TRY_ASSIGN(const PathEnd end, FollowLinks(path, failure));
  if (end.IsStream()) {
    HPD_TRY_ASSIGN(ScopedFd stream, OpenOther(end, path, failure));
    return NamedOutput{.file = std::nullopt, .stream = std::move(stream)};
  }
  HPD_TRY_ASSIGN(NewFile file,
                 NewFile::Create({FdPath(end.folder.get()) + "/" + end.name, path}));
  return NamedOutput{.file = std::move(file), .stream = {}};
}

Result<ScopedFd> OpenNamedStream(const std::string& path) {
  const std::string failure = "cannot create " + path;
  HPD_TRY_ASSIGN(const PathEnd end, FollowLinks(path, failure));
  return end.IsStream() ? OpenOther(end, path, failure) : ScopedFd();
}

}  // namespace heapprofd
