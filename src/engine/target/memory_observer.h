// What the kernel and the program's allocator say about a target's memory.
//
// The allocator is asked by way of the client, which answers from within an allocation of
// its own: whoever asks looks for the answer later.
//
// One thread: the session's. The answer is the target's word.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "engine/target/shared_memory.h"
#include "profile/model.h"

namespace heapprofd {

class MemoryObserver {
 public:
  // All outlive it. `seen`: what is to be kept up to date.
  MemoryObserver(pid_t pid, SharedMemory* memory, MemoryContext* seen)
      : pid_(pid), memory_(memory), seen_(seen) {}

  // Has the client ask the program's allocator for its accounting.
  void Ask();
  bool HasAnswer() const;

  // All of it, the allocator's answer included. `live_bytes`: by our estimate. Of a
  // process that is gone, what was seen last stands.
  void Read(double live_bytes);

  // The cheap part of it, to have something when the process ends unseen.
  void Look(double live_bytes);

 private:
  void ReadReport();

  pid_t pid_;
  SharedMemory* memory_;
  MemoryContext* seen_;
  uint32_t question_ = 0;  // the number of the last one
};

}  // namespace heapprofd
