// What a thread does right now, as /proc/TID/status says: nobody waits for that.
#pragma once

#include <sys/types.h>

namespace heapprofd {

// Whether a thread waits in the kernel where nothing can stop it: for a disk, for the
// child of its vfork.
bool IsUninterruptible(pid_t tid);

// Whether a thread runs, or waits for a processor.
bool IsRunnable(pid_t tid);

// Whether a thread that has been asked to stop has, or will as soon as it gets a processor:
// waiting for it keeps it from nothing.
bool IsReady(pid_t tid);

// Whether a thread has ended, its tracer's last wait for it perhaps left.
bool IsDead(pid_t pid, pid_t tid);

}  // namespace heapprofd
