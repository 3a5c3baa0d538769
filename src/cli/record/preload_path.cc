#include "cli/record/preload_path.h"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/files/folder.h"
#include "base/files/temporary_directory.h"

namespace heapprofd {
namespace {

bool IsSafe(const std::string& path) {
  return path.find_first_of(" :$\t\n") == std::string::npos;
}

std::string ParentForLink() {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/' && IsSafe(runtime) &&
      access(runtime, W_OK) == 0 && (geteuid() != 0 || IsUnalterable(runtime)))
    return runtime;
  return TemporaryDirectory([](const std::string& path) {
    return IsSafe(path) && (geteuid() != 0 || IsOpenToAll(path));
  });
}

// The folder below the library's own in which each loader finds what suits it
// (src/client/CMakeLists.txt). Empty: there is none, or the kernel names a platform that
// is not in it, and the loader would complain.
std::string PlatformFolder(const std::string& folder, const std::string& name) {
  const auto* platform = reinterpret_cast<const char*>(getauxval(AT_PLATFORM));
  const std::string platforms = "/platforms/";
  if (platform == nullptr ||
      access((folder + platforms + platform + name).c_str(), F_OK) != 0)
    return "";
  return platforms + "$PLATFORM";
}

}  // namespace

Result<PreloadPath> PreloadPath::For(const std::string& library) {
  const std::string folder = library.substr(0, library.rfind('/'));
  const std::string name = library.substr(folder.size());
  const std::string below = PlatformFolder(folder, name) + name;
  if (IsSafe(library))
    return PreloadPath(folder + below, "");
  const std::string failure =
      "cannot preload " + library +
      ": LD_PRELOAD cannot name a path with blanks, colons or $, and a link to it ";
  std::string directory = ParentForLink() + "/heap_profile-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr)
    return Status::FromErrno(failure + "cannot be made as " + directory, errno);
  // A target may change its user id and still start others.
  chmod(directory.c_str(), geteuid() == 0 ? 0711 : 0700);
  const std::string link = directory + kLink;
  PreloadPath path(link + below, directory);
  if (symlink(folder.c_str(), link.c_str()) != 0)
    return Status::FromErrno(failure + "cannot be made as " + link, errno);
  return path;
}

PreloadPath::PreloadPath(PreloadPath&& other) noexcept
    : text_(std::move(other.text_)), directory_(std::exchange(other.directory_, "")) {}

PreloadPath::~PreloadPath() {
  if (directory_.empty())
    return;
  unlink((directory_ + kLink).c_str());
  rmdir(directory_.c_str());
}

}  // namespace heapprofd
