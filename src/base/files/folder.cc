#include "base/files/folder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files/own_rights.h"

namespace heapprofd {
namespace {

struct ForeignLink {
  std::string path;
  uid_t owner;
  size_t left;  // bytes of the path behind it
};

bool IsOnlyOurs(const struct stat& status) {
  const bool is_open_to_others =
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0;
  return (IsRootUser(status.st_uid) || status.st_uid == geteuid()) && !is_open_to_others;
}

// Goes along a path, part by part, and looks at the links that it follows.
class FolderWalk {
 public:
  explicit FolderWalk(const std::string& path) : rest_(path) {
    at_ = OwnDirectory();
    if (!at_.valid())
      at_ = ScopedFd(
          open(path.starts_with('/') ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }

  // Invalid: errno says why.
  ScopedFd Run() {
    while (at_.valid() && !rest_.empty()) {
      const std::string part = TakePart();
      if (!part.empty())
        at_ = Step(part);
      LookAtTargets();
    }
    return std::move(at_);
  }

  // Wherever it has looked something up, nobody else could put another in its place.
  bool is_unalterable() const { return is_unalterable_; }

  // One that leads to what is not its owner's.
  const std::optional<ForeignLink>& misleading() const { return misleading_; }

 private:
  // What FdPath leads to is at hand already, also where /proc is not. Invalid: the path is
  // none of these.
  ScopedFd OwnDirectory() {
    constexpr std::string_view kOwn = "/proc/self/fd/";
    int fd = -1;
    if (!rest_.starts_with(kOwn))
      return {};
    const char* const end = rest_.data() + rest_.size();
    const auto [behind, error] = std::from_chars(rest_.data() + kOwn.size(), end, fd);
    if (error != std::errc() || (behind != end && *behind != '/'))
      return {};
    ScopedFd own(fcntl(fd, F_DUPFD_CLOEXEC, 0));

    struct stat status {};

    if (!own.valid() || fstat(own.get(), &status) != 0 || !S_ISDIR(status.st_mode))
      return {};
    rest_.erase(0, static_cast<size_t>(behind - rest_.data()));
    return own;
  }

  std::string TakePart() {
    const size_t end = std::min(rest_.find('/'), rest_.size());
    std::string part = rest_.substr(0, end);
    rest_.erase(0, std::min(end + 1, rest_.size()));
    return part;
  }

  ScopedFd Step(const std::string& part) {
    struct stat place {};

    is_unalterable_ &= fstat(at_.get(), &place) == 0 && IsOnlyOurs(place);
    // As a directory, so that it is mounted if it is to be at its first use.
    ScopedFd next(
        openat(at_.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (next.valid() || errno != ENOTDIR)
      return next;
    next = ScopedFd(openat(at_.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));

    struct stat status {};

    if (!next.valid() || fstat(next.get(), &status) != 0)
      return {};
    if (S_ISLNK(status.st_mode))
      return Follow(part, next, LinkOwner(status, place));
    errno = ENOTDIR;
    return {};
  }

  ScopedFd Follow(const std::string& part, const ScopedFd& link, uid_t owner) {
    struct statfs system {};

    // The kernel's own: there is no text that it could be followed by.
    if (fstatfs(link.get(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC)
      return ScopedFd(openat(at_.get(), part.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    std::array<char, PATH_MAX> text{};
    const ssize_t length = readlinkat(link.get(), "", text.data(), text.size());
    if (length < 0)
      return {};
    if (++links_ > kMostLinks) {
      errno = ELOOP;
      return {};
    }
    if (!IsRootUser(owner)) {
      foreign_links_.push_back({.path = part, .owner = owner, .left = rest_.size()});
      is_unalterable_ = false;
    }
    rest_.insert(0, std::string(text.data(), static_cast<size_t>(length)) + "/");
    if (!rest_.starts_with('/'))
      return std::move(at_);
    return ScopedFd(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }

  // Of links whose text is behind us.
  void LookAtTargets() {
    struct stat status {};

    for (; !foreign_links_.empty() && foreign_links_.back().left >= rest_.size();
         foreign_links_.pop_back()) {
      if (at_.valid() && !misleading_ &&
          (fstat(at_.get(), &status) != 0 ||
           status.st_uid != foreign_links_.back().owner))
        misleading_ = foreign_links_.back();
    }
  }

  ScopedFd at_;
  std::string rest_;
  int links_ = 0;
  bool is_unalterable_ = true;
  std::vector<ForeignLink> foreign_links_;  // that we are on the way of; innermost last
  std::optional<ForeignLink> misleading_;
};

}  // namespace

bool IsRootUser(uid_t user) {
  constexpr uid_t kOverflowUser = 65534;  // /proc/sys/kernel/overflowuid
  static const bool is_first = IsInFirstUserNamespace();
  return user == 0 || (user == kOverflowUser && !is_first);
}

uid_t LinkOwner(const struct stat& link, const struct stat& folder) {
  return IsRootUser(link.st_uid) ? folder.st_uid : link.st_uid;
}

Result<ScopedFd> OpenFolder(const std::string& path, const std::string& failure) {
  if (geteuid() != 0 || path.empty()) {
    ScopedFd folder(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder.valid())
      return Status::FromErrno(failure, errno);
    return folder;
  }

  FolderWalk walk(path);
  ScopedFd folder = walk.Run();
  if (!folder.valid())
    return Status::FromErrno(failure, errno);
  if (const std::optional<ForeignLink>& link = walk.misleading())
    return Status(StatusCode::kInvalidArgument,
                  failure + ": the link " + link->path +
                      " on the way there belongs to user " + std::to_string(link->owner) +
                      ", and what it leads to does not; give the path without it");
  return folder;
}

Result<ScopedFd> OpenUnalterableFolder(const std::string& path,
                                       const std::string& failure) {
  if (geteuid() != 0)
    return OpenFolder(path, failure);
  FolderWalk walk(path);
  ScopedFd folder = walk.Run();

  struct stat status {};

  if (!folder.valid() || fstat(folder.get(), &status) != 0)
    return Status::FromErrno(failure, errno);
  if (!walk.is_unalterable() || !IsOnlyOurs(status))
    return Status(
        StatusCode::kInvalidArgument,
        failure + ": other users can alter " +
            path.substr(0, std::max<size_t>(path.find_last_not_of('/') + 1, 1)) +
            "; name a place that root alone can alter");
  return folder;
}

SplitPath Split(const std::string& path) {
  const size_t name = path.rfind('/') + 1;  // 0: there is no slash
  return {.folder = name == 0 ? "." : path.substr(0, name),
          .name = name == path.size() ? "." : path.substr(name)};
}

bool IsUnalterable(const std::string& directory) {
  struct stat status {};

  FolderWalk walk(directory);
  const ScopedFd reached = walk.Run();
  if (!reached.valid())
    return errno == ENOENT && walk.is_unalterable();
  return walk.is_unalterable() && fstat(reached.get(), &status) == 0 &&
         IsOnlyOurs(status);
}

}  // namespace heapprofd
