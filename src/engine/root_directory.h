// The root directories of processes, for the files that only they can name: of all that
// have the same one there is one descriptor, or an hour of short processes would use all
// of them up.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/scoped_fd.h"

namespace heapprofd {

// To be used also when the process is gone; nullptr when it may not be looked into, or
// not in time.
std::shared_ptr<const ScopedFd> OpenRoot(pid_t pid);

// Whether there is room for one more that outlives its processes: every container has its
// own, and whoever may make name spaces has as many as he likes.
bool MayKeepRoot();

}  // namespace heapprofd
