// Work on other processes, on a thread of its own: it waits for them, and whoever wants
// it done serves others meanwhile.
//
// The thread is the tracer of whatever the work traces, and ends with it. The kernel then
// lets go of all that is left, also of threads that do not stop (they wait for a disk, or
// for the child of their vfork): nobody else can, and until then no signal would end the
// program.
#pragma once

#include <functional>

namespace heapprofd {

// Runs `work` to its end and calls `between` every few milliseconds until then. False: it
// has not come to an end in time, or could not begin (too many have not; no threads are
// left). It may go on by itself then, so all that it uses must be its own.
bool RunApart(std::function<void()> work, const std::function<void()>& between);

// Whether `between` is being called: nothing can be run apart from in there.
bool IsRunningApart();

}  // namespace heapprofd
