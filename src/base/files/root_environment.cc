#include "base/files/root_environment.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "base/files/folder.h"

namespace heapprofd {
namespace {

// Each names a directory, or in TERMINFO_DIRS several, or with EDITRC a file: that is
// never kept.
constexpr const char* kPlaceVariables[] = {
    "HOME",           "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
    "XDG_STATE_HOME", "XDG_DATA_HOME",  "TERMINFO",
    "TERMINFO_DIRS",  "EDITRC",         "DEBUGINFOD_CACHE_PATH"};

}  // namespace

bool IsOwnAlone(const std::string& directory) {
  struct stat status {};

  return IsUnalterable(directory) && stat(directory.c_str(), &status) == 0 &&
         S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

void ForgetForeignPlaces() {
  if (geteuid() != 0)
    return;
  for (const char* variable : kPlaceVariables) {
    const char* const place = getenv(variable);
    if (place != nullptr && !IsOwnAlone(place))
      unsetenv(variable);
  }
}

std::string RootsHome() {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/etc/passwd", "re"), fclose);
  while (const passwd* entry = file != nullptr ? fgetpwent(file.get()) : nullptr) {
    if (entry->pw_uid == 0 && entry->pw_dir != nullptr && entry->pw_dir[0] == '/')
      return entry->pw_dir;
  }
  return "/root";
}

std::string TrustedPath() {
  const char* const path = getenv("PATH");
  if (path == nullptr || geteuid() != 0)
    return path == nullptr ? "" : path;
  std::string trusted;
  std::istringstream directories(path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (IsOwnAlone(directory))
      trusted += (trusted.empty() ? "" : ":") + directory;
  }
  return trusted;
}

}  // namespace heapprofd
