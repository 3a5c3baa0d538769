// Memory, mappings and state of a process, from outside. Everything read is hostile.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files/proc_files.h"
#include "base/scoped_fd.h"
#include "base/status.h"
#include "unwind/proc_maps.h"

namespace heapprofd {

// What the process calls itself; "" when it is gone.
std::string CommandName(pid_t pid);

class RemoteProcess {
 public:
  // The memory is that of the image that runs now: after an exec it reads as empty.
  static Result<RemoteProcess> Open(pid_t pid);

  pid_t pid() const { return pid_; }

  // The thread under whose number /proc shows what belongs to all: see LiveThread.
  pid_t view() const;

  bool Read(uint64_t address, void* to, size_t size) const;

  // Also into memory that the process itself may not write to.
  bool Write(uint64_t address, const void* from, size_t size) const;

  template <typename T>
  bool ReadObject(uint64_t address, T* object) const {
    return Read(address, object, sizeof(T));
  }

  template <typename T>
  bool WriteObject(uint64_t address, const T& object) const {
    return Write(address, &object, sizeof(T));
  }

  // Keeps other engines out while we attach; false: one is at it. The kernel ends it when
  // all descriptors are gone, those of forked children, too: until Unlock, if possible.
  bool Lock() const;
  void Unlock() const;

  std::vector<MapEntry> Maps() const;

  // False when the process has become another image since Open, or is gone.
  bool IsSameImage() const;

  // The same without a wait: false, too, when the kernel does not tell in time.
  bool HasBecomeAnother() const;

  // view(), as it was when the process was opened.
  pid_t opened_view() const { return opened_view_; }

  // Thread ids, the leader first.
  std::vector<pid_t> Threads() const;

 private:
  RemoteProcess(pid_t pid, pid_t view, ScopedFd memory, std::string image_id)
      : pid_(pid),
        opened_view_(view),
        memory_(std::move(memory)),
        image_id_(std::move(image_id)) {}

  pid_t pid_;
  pid_t opened_view_;
  ScopedFd memory_;
  std::string image_id_;
};

// Where the kernel put this image's code and stack, and its file: no two images of a
// process agree in all of them.
std::string ImageId(pid_t pid);

// A thread of a process that has a program: itself, or another one when its first thread
// has ended, which makes most of /proc/PID empty.
pid_t LiveThread(pid_t pid);

}  // namespace heapprofd
