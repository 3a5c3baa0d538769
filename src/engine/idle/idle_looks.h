// When a target's memory is looked at for what is idle, and as far as its user's share of
// our memory allows.
//
// One thread: the session's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "engine/idle/idle_memory.h"
#include "engine/session_config.h"
#include "engine/target/target_account.h"
#include "profile/live_heap.h"

namespace heapprofd {

class IdleLooks {
 public:
  // Of malloc's heap; both outlive this.
  struct Parts {
    const LiveHeap* heap;
    TargetAccount* account;
  };

  // Nobody has asked.
  explicit IdleLooks(const Parts& parts) : parts_(parts) {}

  IdleLooks(const Parts& parts, IdleMemory memory)
      : parts_(parts), memory_(std::move(memory)) {}

  // As the configuration of the process's recording says, and kernel and rights allow.
  static IdleLooks Of(pid_t pid, const SessionConfig& config, const Parts& parts);

  // Finds out what is idle, for the next dump, for about `turn_ns`. True: done, or nobody
  // asks.
  bool Look(IdleMemory::Occasion occasion, uint64_t turn_ns);

  // The same between dumps, where it is time for that, until `end_ns` (CLOCK_MONOTONIC).
  void LookBetween(uint64_t end_ns);

  // There is no time for more turns: the next dump has what was found before.
  void Drop();

  // nullptr: nobody has asked, or it cannot be told.
  const IdleMemory* memory() const { return memory_ ? &*memory_ : nullptr; }

  // Why it is not told, or may be told wrongly; "": nothing is known.
  const std::string& note() const { return note_; }

 private:
  Parts parts_;
  std::optional<IdleMemory> memory_;
  std::string note_;
};

}  // namespace heapprofd
