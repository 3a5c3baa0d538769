// Which owners of a target's fork slots have ended, so that their slots can be used
// again.
//
// An owner is known by its thread id as it sees it itself (wire/shared_memory.h), and it
// may be in a PID name space of its own. So it has ended only if no thread that we see
// has that id in any name space; a thread that only happens to have it keeps a slot busy.
#pragma once

#include <dirent.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "wire/shared_memory.h"

namespace heapprofd {

class EndedOwners {
 public:
  // Of slots that are owned now: who takes one later is not looked at.
  explicit EndedOwners(const ClientBlock& client);

  // Reads on in /proc; true: done, also when nothing can be found out (processes are
  // hidden from us, or it takes too many turns). A machine has many processes: call it
  // again.
  bool LookUntil(uint64_t deadline_ns);

  // After that. How many slots were freed.
  uint32_t Free(ClientBlock& client) const;

 private:
  using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

  struct Owner {
    uint32_t slot;
    uint64_t value;
  };

  void LookAtProcess(const std::string& directory);
  void LookAtThread();
  std::string ReadStatus(const std::string& directory);
  void GiveUp();

  std::vector<Owner> candidates_;            // not alive in our name space
  std::unordered_set<uint64_t> unseen_ids_;  // theirs, as far as we have looked
  // A process with a PID name space may make threads faster than we look at them.
  int turns_left_ = 500;
  int looks_left_ = 2;  // a list of threads may lack some while others of it end
  Directory processes_;
  Directory threads_;  // of the process under way, which is in a name space of its own
  std::string process_;
};

}  // namespace heapprofd
