// Whose mounts a process sees.
#pragma once

#include <sys/types.h>

namespace heapprofd {

// Whether only somebody with root's rights can mount in the process's mount namespace. In
// one that belongs to a user, the user mounts what he likes. False also when nobody can
// tell.
bool IsOurUsersNamespace(pid_t pid);

}  // namespace heapprofd
