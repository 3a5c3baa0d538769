// What a service does for a recording about programs that have no client of ours: it
// attaches to those that run, and has those caught that start.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "engine/session.h"

namespace heapprofd {

struct AttachPolicy {
  std::string directory;    // of the service
  std::string wake_page;    // in it; programs that it wakes report by themselves
  std::string search_path;  // the caller's PATH
  std::function<bool(pid_t)> is_taken;  // by another recording
  std::function<void()> between;        // called between two processes
  ExecWatcher::MakeGate make_watcher;   // for the owner
};

// Attaches to what the session wants of the running processes. `notes`: what could not be
// done, one line each. An error when none of the processes can be recorded and none can
// come.
Status AttachToRunning(Session& session,
                       const AttachPolicy& policy,
                       std::vector<std::string>* notes);

// From now on catches what the session wants of the programs that start. False: nobody
// here can, and they are to be looked for when they run (seen_starts.h).
bool CatchStarting(Session& session,
                   const AttachPolicy& policy,
                   std::vector<std::string>* notes);

// Attaches to a process of the session's names that has begun meanwhile, unless it reports
// by itself. What cannot be done is a problem of the session's. False: it is to be tried
// again.
bool AttachToNew(Session& session, pid_t pid, const AttachPolicy& policy);

}  // namespace heapprofd
