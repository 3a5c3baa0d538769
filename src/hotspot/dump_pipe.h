// A FIFO that a virtual machine can write its dump to: in a directory of its own user's
// in its /tmp, which nobody else can enter.
//
// Whoever opens a FIFO that nobody reads from waits, and HotSpot waits in a state in
// which all of its threads wait with it. So the FIFO exists only while the reading end is
// open: it is removed first, and then closed. docs/design/java-heap-dump.md has more.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

class DumpPipe {
 public:
  // A name for the directory that tells whose it is, and that nobody can guess.
  static std::string FreshName(pid_t pid);

  // `temporary`: the process's /tmp.
  static Result<DumpPipe> Create(int temporary, const std::string& name);

  // What somebody has left who was killed, if he has. Whoever waits to write to it goes
  // on.
  static Status RemoveLeft(int temporary, const std::string& name);

  DumpPipe(DumpPipe&& other) noexcept;
  DumpPipe& operator=(DumpPipe&&) = delete;

  ~DumpPipe() { (void)Remove(); }

  // Also what the virtual machine has put beside it (side_file.h), and may still be
  // putting there. An error: something is left.
  Status Remove();

  // Of the regular files beside it, on their file system.
  uint64_t BytesBeside() const;

  // As the process sees it.
  const std::string& path() const { return path_; }

  // Reading does not block. The end is told by poll(2) alone: a read(2) of nothing can
  // also mean that nobody has begun to write.
  int fd() const { return fd_.get(); }

 private:
  DumpPipe(int temporary, std::string name);
  void Open();

  int temporary_;
  std::string name_;  // of the directory; empty: there is none
  std::string path_;
  ScopedFd directory_;
  ScopedFd fd_;
};

}  // namespace heapprofd
