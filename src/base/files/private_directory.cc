#include "base/files/private_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/files/temporary_directory.h"

namespace heapprofd {

Result<PrivateDirectory> PrivateDirectory::Create(const std::string& name) {
  std::string path = ChosenTemporaryDirectory() + "/" + name + "-XXXXXX";
  if (mkdtemp(path.data()) == nullptr)
    return Status::FromErrno("cannot create " + path, errno);
  return PrivateDirectory(std::move(path));
}

PrivateDirectory::PrivateDirectory(std::string path) : path_(std::move(path)) {}

PrivateDirectory::PrivateDirectory(PrivateDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;
  if (!path_.empty())
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace heapprofd
