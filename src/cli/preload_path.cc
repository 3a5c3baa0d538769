#include "cli/preload_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace heapprofd {
namespace {

bool IsSafe(const std::string& path) {
  return path.find_first_of(" :$\t\n") == std::string::npos;
}

std::string ParentForLink() {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/' && IsSafe(runtime) &&
      access(runtime, W_OK) == 0)
    return runtime;
  return "/tmp";
}

}  // namespace

Result<PreloadPath> PreloadPath::For(const std::string& library) {
  if (IsSafe(library))
    return PreloadPath(library, "");
  const std::string failure =
      "cannot preload " + library +
      ": LD_PRELOAD cannot name a path with blanks, colons or $, and a link to it ";
  std::string directory = ParentForLink() + "/heap_profile-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr)
    return Status::FromErrno(failure + "cannot be made as " + directory, errno);
  // A target may change its user id and still start others.
  chmod(directory.c_str(), geteuid() == 0 ? 0711 : 0700);
  PreloadPath path(directory + library.substr(library.rfind('/')), directory);
  if (symlink(library.c_str(), path.text_.c_str()) != 0)
    return Status::FromErrno(failure + "cannot be made as " + path.text_, errno);
  return path;
}

PreloadPath::PreloadPath(PreloadPath&& other) noexcept
    : text_(std::move(other.text_)), directory_(std::exchange(other.directory_, "")) {}

PreloadPath::~PreloadPath() {
  if (directory_.empty())
    return;
  unlink(text_.c_str());
  rmdir(directory_.c_str());
}

}  // namespace heapprofd
