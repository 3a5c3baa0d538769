#include "cli/record/output_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/files/own_file.h"
#include "base/files/temporary_directory.h"

namespace heapprofd {
namespace {

// Whoever may change the directory decides where root's files go, and who reads them.
Status CheckForRoot(const std::string& path) {
  if (geteuid() != 0 || IsPrivateDirectory(path))
    return {};
  return Status(StatusCode::kInvalidArgument,
                "cannot use output directory " + path +
                    ": other users may change it; name one that is root's alone");
}

Result<std::string> UseRequested(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0)
    return path;
  if (errno != EEXIST)
    return Status::FromErrno("cannot create output directory " + path, errno);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return Status(StatusCode::kInvalidArgument,
                  "cannot use output directory " + path +
                      ": it is no directory; name another one with --output");
  const bool is_empty = std::filesystem::is_empty(path, error);
  if (error)
    return Status(StatusCode::kIo,
                  "cannot use output directory " + path + ": " + error.message());
  if (!is_empty)
    return Status(StatusCode::kInvalidArgument,
                  "cannot use output directory " + path +
                      ": it is not empty; name another one with --output");
  HPD_TRY(CheckForRoot(path));
  return path;
}

// One that the user has chosen is used or named, and no other in its place.
std::string ParentOfFresh() {
  const char* const chosen = getenv("TMPDIR");
  return chosen != nullptr && *chosen != 0 ? chosen : TemporaryDirectory();
}

Result<std::string> CreateFresh(const std::string& base) {
  std::string path = base + "/heap_profile-XXXXXX";
  if (mkdtemp(path.data()) == nullptr)
    return Status::FromErrno(
        "cannot create an output directory in " + base + " (name another with --output)",
        errno);
  return path;
}

}  // namespace

Result<std::string> UseOutputDirectory(const std::string& requested) {
  if (requested.empty())
    return CreateFresh(ParentOfFresh());
  if (mkdir(requested.c_str(), 0700) != 0 && errno != EEXIST)
    return Status::FromErrno("cannot create output directory " + requested, errno);
  HPD_TRY(CheckForRoot(requested));
  return requested;
}

Result<std::string> CreateOutputDirectory(const std::string& requested) {
  if (!requested.empty())
    return UseRequested(requested);
  const std::string base = ParentOfFresh();
  HPD_TRY_ASSIGN(std::string path, CreateFresh(base));
  // A convenience only: another user's link of this name stays as it is. Root has none
  // where others could put theirs in its place.
  if (geteuid() == 0 && !IsPrivateDirectory(base))
    return path;
  const std::string link = base + "/heap_profile-latest";
  unlink(link.c_str());
  if (symlink(path.c_str(), link.c_str()) != 0)
    errno = 0;
  return path;
}

}  // namespace heapprofd
