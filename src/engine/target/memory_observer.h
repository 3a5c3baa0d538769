// What the kernel and the program's allocator say about a target's memory.
//
// The allocator is asked by way of the client, which answers from within an allocation of
// its own: whoever asks looks for the answer later.
//
// One thread: the session's. The answer is the target's word.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "engine/process_info.h"
#include "profile/model.h"
#include "wire/memory_files.h"

namespace heapprofd {

class MemoryObserver {
 public:
  // All outlive it. `seen`: what is to be kept up to date.
  MemoryObserver(pid_t pid, SharedMemory* memory, MemoryContext* seen);

  // Has the client ask the program's allocator for its accounting.
  void Ask();
  bool HasAnswer() const;

  // All of it, the allocator's answer included. `live_bytes`: by our estimate. Of a
  // process that is gone, or has become another program, what was seen last stands.
  void Read(double live_bytes);

  // The cheap part of it, to have something when the process ends unseen. May be called
  // at any rate: it reads when an eighth of the time since the first look has passed, and
  // ten times a second at most from then on. `now_ns`: CLOCK_MONOTONIC.
  void Look(double live_bytes, uint64_t now_ns);

 private:
  bool IsOfTarget(const MemoryStatus& now);
  void ReadReport();

  pid_t pid_;
  MemoryImage image_;  // when it was looked at last
  SharedMemory* memory_;
  MemoryContext* seen_;
  uint32_t question_ = 0;  // the number of the last one
  std::optional<uint64_t> first_look_ns_;
  uint64_t next_look_ns_ = 0;
};

}  // namespace heapprofd
