// What a forked child does for the one that has forked it.
#pragma once

#include <sys/types.h>

namespace heapprofd {

// In the child: `signal` is sent to this process when the parent ends, also when it has
// ended already. `parent`: what getpid() said before fork(). It is forgotten when the
// user or the program's capabilities change.
void EndWithParent(pid_t parent, int signal);

// When memory runs out it is this process that is ended, and its children, not the one
// with the most memory.
void VolunteerToBeEnded();

}  // namespace heapprofd
