// For tests of what is said on another machine than this one: with other mounts, as
// another user.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "base/scoped_fd.h"

namespace heapprofd {

// What `say` returns in a child process whose mounts are its own, after `prepare` has
// changed them. Nothing where that is not allowed.
inline std::optional<std::string> SaidInChild(const std::function<bool()>& prepare,
                                              const std::function<std::string()>& say) {
  constexpr int kNotAllowed = 77;
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0)
    return std::nullopt;
  const ScopedFd from_child(fds[0]);
  ScopedFd to_parent(fds[1]);
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 || !prepare())
      _exit(kNotAllowed);
    // Whatever is thrown must not let the child go on with the tests of its parent.
    const std::string said = [&]() noexcept { return say(); }();
    const ssize_t written = write(to_parent.get(), said.data(), said.size());
    _exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  to_parent.reset();
  std::array<char, 4096> said{};
  const ssize_t size = read(from_child.get(), said.data(), said.size());
  int status = 0;
  if (waitpid(child, &status, 0) != child ||
      (WIFEXITED(status) && WEXITSTATUS(status) == kNotAllowed))
    return std::nullopt;
  if (status != 0)
    return "the child ended with status " + std::to_string(status);
  return std::string(said.data(), size > 0 ? static_cast<size_t>(size) : 0);
}

// Nothing can be written to where temporary files go.
inline bool MakeTemporaryPlacesReadOnly() {
  unsetenv("TMPDIR");
  unsetenv("XDG_RUNTIME_DIR");
  for (const char* const place : {"/tmp", "/var/tmp", "/run", "/dev/shm"}) {
    if (mount("tmpfs", place, "tmpfs", MS_RDONLY, nullptr) != 0)
      return false;
  }
  return true;
}

}  // namespace heapprofd
