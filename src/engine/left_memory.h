// The client's memory of a process that has ended, for as long as children of it count
// there.
//
// Whether there are any is asked of the kernel: it seals a file against writing only when
// nobody has it mapped for that. So a child may be anywhere, also in a PID name space of
// its own, and however it ends, the memory can go. Costs one descriptor.
#pragma once

#include <cstdint>

#include "base/scoped_fd.h"
#include "profile/model.h"
#include "wire/shared_memory.h"

namespace heapprofd {

class LeftMemory {
 public:
  // Its ring is given back to the system. Nothing of ours may have it mapped.
  explicit LeftMemory(ScopedFd client_file);
  ~LeftMemory();
  LeftMemory(const LeftMemory&) = delete;
  LeftMemory& operator=(const LeftMemory&) = delete;

  // nullptr: it could not be mapped.
  const ClientBlock* client() const { return client_; }

  // False: what it says now will not change. True also when others hold pages of it, as
  // for a transfer; the kernel waits for those a moment (75 ms at most).
  bool IsInUse() const;

 private:
  ScopedFd file_;
  const ClientBlock* client_ = nullptr;
};

}  // namespace heapprofd
