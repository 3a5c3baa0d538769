#include "base/files/temporary_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/files/folder.h"

namespace heapprofd {
namespace {

// One that is missing is named by whoever tries to use it.
bool IsSuitableForUs(const char* directory) {
  return geteuid() != 0 || IsUnalterable(directory);
}

bool IsUsable(const std::string& directory) {
  return access(directory.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

std::vector<std::string> TemporaryDirectories() {
  std::vector<std::string> directories = {"/tmp", "/var/tmp", "/run", "/dev/shm"};
  const char* chosen = getenv("TMPDIR");
  if (chosen != nullptr && *chosen == '/' && IsSuitableForUs(chosen))
    directories.insert(directories.begin(), chosen);
  return directories;
}

std::string TemporaryDirectory(
    const std::function<bool(const std::string&)>& is_suitable) {
  for (const std::string& directory : TemporaryDirectories()) {
    if (IsUsable(directory) && (!is_suitable || is_suitable(directory)))
      return directory;
  }
  return "/tmp";
}

std::string NamelessDirectory() {
  const char* const chosen = getenv("TMPDIR");
  return chosen != nullptr && *chosen == '/' && IsUsable(chosen) ? chosen
                                                                 : TemporaryDirectory();
}

std::string ChosenTemporaryDirectory() {
  const char* const chosen = getenv("TMPDIR");
  return chosen != nullptr && *chosen != 0 && IsSuitableForUs(chosen) ? chosen : "/tmp";
}

bool IsOpenToAll(const std::string& directory) {
  struct stat status {};

  return stat(directory.c_str(), &status) == 0 && (status.st_mode & S_IXOTH) != 0;
}

}  // namespace heapprofd
