// A directory for files that another program writes for us: only we may enter it, and it
// is gone with this object, whatever is in it.
#pragma once

#include <string>

#include "base/status.h"

namespace heapprofd {

class PrivateDirectory {
 public:
  // In ChosenTemporaryDirectory(). `name`: what its own begins with.
  static Result<PrivateDirectory> Create(const std::string& name);

  PrivateDirectory(PrivateDirectory&& other) noexcept;
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  ~PrivateDirectory();

  const std::string& path() const { return path_; }

 private:
  explicit PrivateDirectory(std::string path);

  std::string path_;  // empty: moved away
};

}  // namespace heapprofd
