// Where a dump goes: memory, or a file that the user keeps. Nothing has its name before
// Keep(), and nothing that has this name by then is replaced or followed. Memory is gone
// when this process is, whatever ends it; the file, too, where the file system knows files without names (O_TMPFILE). Where
// it does not, one that is killed leaves .NAME.XXXXXXXX, and nobody takes that for a
// dump.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

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

  // Now it is whole: it is put on the disk and gets its name, if it is to have one. Gives
  // it for reading.
  Result<ScopedFd> Keep();

 private:
  explicit KeptDump(ScopedFd memory) : fd_(std::move(memory)) {}

  KeptDump(const std::string& path, ScopedFd directory);
  Status Open();
  bool GiveName();

  ScopedFd fd_;
  std::string path_;      // empty: memory
  ScopedFd directory_;    // looked up once: a path could lead elsewhere the second time
  std::string name_;      // there
  std::string stand_in_;  // what it is called until then; empty: it is nameless
};

}  // namespace heapprofd
