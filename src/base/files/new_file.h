// A file that appears whole or not at all. It has no name until then where the file system
// knows files without names (O_TMPFILE): whoever writes it may be killed, and nothing is
// left. Elsewhere PATH.XXXXXX is left then.
#pragma once

#include <string>

#include "base/files/file_place.h"
#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class NewFile {
 public:
  // In the directory of `place`, which must be there and is looked up once (OpenFolder);
  // for its owner alone (0600).
  static Result<NewFile> Create(const FilePlace& place);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  // For writing.
  int fd() const { return fd_.get(); }

  // Gives it its name; what had it is replaced, but no directory. Once.
  Status Appear();

 private:
  NewFile(std::string path, std::string name, ScopedFd folder);

  // False: errno says why.
  bool Open();

  // errno of its failure; 0: it has the name.
  int Link(const std::string& name) const;

  std::string path_;  // for messages
  std::string name_;  // in the folder
  ScopedFd folder_;
  ScopedFd fd_;
  std::string stand_in_;  // what it is called; empty: it is nameless, or has its name
};

}  // namespace heapprofd
