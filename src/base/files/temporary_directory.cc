#include "base/files/temporary_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace heapprofd {

std::vector<std::string> TemporaryDirectories() {
  std::vector<std::string> directories = {"/tmp", "/var/tmp", "/run", "/dev/shm"};
  const char* chosen = getenv("TMPDIR");
  if (chosen != nullptr && *chosen == '/')
    directories.insert(directories.begin(), chosen);
  return directories;
}

std::string TemporaryDirectory(
    const std::function<bool(const std::string&)>& is_suitable) {
  for (const std::string& directory : TemporaryDirectories()) {
    if (access(directory.c_str(), W_OK | X_OK) == 0 &&
        (!is_suitable || is_suitable(directory)))
      return directory;
  }
  return "/tmp";
}

bool IsOpenToAll(const std::string& directory) {
  struct stat status {};

  return stat(directory.c_str(), &status) == 0 && (status.st_mode & S_IXOTH) != 0;
}

}  // namespace heapprofd
