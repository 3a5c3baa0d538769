// Programs of a recording's names that start meanwhile, where the exec gate is not
// possible: only root may hold execs. They are seen when they run already, and attached
// to.
//
// One thread: the service's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "engine/session.h"
#include "service/recordings/attaching.h"

namespace heapprofd {

class SeenStarts {
 public:
  // Remembers the programs that run now; they are not new. From now on Look looks for
  // others.
  void Begin();

  // Attaches to this user's new processes that the session names, if it is time.
  void Look(Session& session, const AttachPolicy& policy);

 private:
  bool IsDone(pid_t pid, Session& session, const AttachPolicy& policy) const;

  bool has_begun_ = false;
  uint64_t next_look_ns_ = 0;
  std::map<pid_t, std::string> known_;  // images
};

}  // namespace heapprofd
