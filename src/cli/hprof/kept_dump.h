// Where a dump of a running virtual machine goes: memory, or a file that the user keeps.
// Either is gone when this process is, whatever ends it, unless Keep() has been called.
#pragma once

#include <cstdint>
#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class KeptDump {
 public:
  // `path`: of a file that does not exist yet; empty: memory.
  static Result<KeptDump> Create(const std::string& path);

  KeptDump(KeptDump&& other) noexcept;
  KeptDump& operator=(KeptDump&&) = delete;
  ~KeptDump();

  // For reading and writing.
  int fd() const { return fd_.get(); }

  // Bytes that it may have.
  uint64_t room() const;

  // Now it is whole: it gets its name, if it is to have one. Gives it for reading.
  Result<ScopedFd> Keep();

 private:
  KeptDump(ScopedFd fd, std::string path, bool has_name);

  ScopedFd fd_;
  std::string path_;  // empty: memory
  bool has_name_;     // already, and loses it unless it is kept
};

}  // namespace heapprofd
