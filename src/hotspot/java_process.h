// A running HotSpot virtual machine that can be asked for something: found, checked, and
// held fast, so that nothing is ever sent to another process that has got its number.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

struct JavaProcess {
  pid_t pid = 0;
  pid_t inner_pid = 0;  // its number for itself, in the innermost of its name spaces
  uid_t user = 0;       // effective ones
  gid_t group = 0;
  std::string name;  // what it calls itself
  ScopedFd handle;   // pidfd
  ScopedFd root;     // its root directory, to look things up from

  // "process 12 (java)", for messages.
  std::string Description() const;
};

// kInvalidArgument: it is no HotSpot virtual machine. kUnavailable: it may not be asked.
Result<JavaProcess> OpenJavaProcess(pid_t pid);

// Whether SIGQUIT, which asks a virtual machine to listen, would not end it. Asked again
// right before it is sent.
bool CatchesQuit(pid_t pid);

struct FoundMachines {
  std::vector<pid_t> pids;
  // Processes that handle SIGQUIT, as virtual machines do, and may have this name, but
  // could not be looked into: the kernel did not show them in time, or not to us.
  size_t late = 0;
  size_t of_others = 0;
};

// Processes with a virtual machine that have this name, or one of whose arguments is it
// or a file of this name: a main class, a jar. All when it is empty.
FoundMachines FindJavaProcesses(const std::string& name);

}  // namespace heapprofd
