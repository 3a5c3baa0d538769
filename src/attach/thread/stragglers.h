// Threads that did not stop when they were to be let go: once they do, somebody must tell
// them to go on. Only the thread of ours that traces them can, so each has a list of its
// own, and must look after it until it is empty, or end: then the kernel lets them go.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace heapprofd {

class TracedThread;

void AddStraggler(const TracedThread& thread);

// It is not to be let go any more. False: it is none, and so not ours.
bool TakeStraggler(pid_t tid);

// Lets those go that have stopped, without waiting.
void ReleaseStragglers();

size_t CountStragglers();

}  // namespace heapprofd
