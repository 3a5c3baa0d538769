#include "engine/session/ended_sockets.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/fd_path.h"
#include "base/files/open_resolved.h"
#include "base/files/own_file.h"
#include "base/scoped_fd.h"
#include "base/unix_address.h"

namespace heapprofd {
namespace {

constexpr size_t kMostLookedAt = 1000;  // recordings have their results in such, too

// Whoever has mounted something there could let us wait for ever.
ScopedFd OpenDirectory(int parent, const std::string& name) {
  return OpenResolved(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                      RESOLVE_NO_XDEV);
}

// Nobody listens at the socket that it has.
bool IsEnded(int directory) {
  struct stat status {};

  if (fstatat(directory, kSessionSocketName, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISSOCK(status.st_mode))
    return false;
  const ScopedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address =
      UnixAddress(FdPath(directory) + "/" + kSessionSocketName).value();
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)) != 0 &&
         errno == ECONNREFUSED;
}

bool RemoveIfEnded(int parent, const std::string& name, const ScopedFd& directory) {
  return IsPrivateDirectory(directory.get()) && IsEnded(directory.get()) &&
         unlinkat(directory.get(), kSessionSocketName, 0) == 0 &&
         unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0;
}

std::vector<std::string> NamesIn(const std::string& directory, const char* prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error);
       !error && entry != std::filesystem::directory_iterator() &&
       names.size() < kMostLookedAt;
       entry.increment(error)) {
    std::string name = entry->path().filename();
    if (name.starts_with(prefix))
      names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

// Root's are one further down (SessionSocket::OpenToOtherUsers).
void RemoveEndedSockets(const std::string& parent) {
  const ScopedFd place(open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const std::string& name : NamesIn(parent, kSessionDirectory)) {
    const ScopedFd directory = OpenDirectory(place.get(), name);
    if (RemoveIfEnded(place.get(), name, directory) ||
        !IsPrivateDirectory(directory.get()) || geteuid() != 0)
      continue;
    bool has_removed = false;
    for (const std::string& below : NamesIn(FdPath(directory.get()), ""))
      has_removed |=
          RemoveIfEnded(directory.get(), below, OpenDirectory(directory.get(), below));
    if (has_removed)
      unlinkat(place.get(), name.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace heapprofd
