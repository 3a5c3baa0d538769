// Rights that a program gains when it is executed (setuid, setgid, file capabilities): the
// kernel withholds them when the thread that executes it is traced by a process without
// CAP_SYS_PTRACE, and nothing gives them back afterwards. So an engine of an ordinary user
// traces no thread that is inside an exec.
//
// The kernel shows what a thread does only while it waits. An exec is mostly work: so a
// thread is best traced when it waits for something else, and then it stops before it can
// begin one.
#pragma once

#include <sys/types.h>

#include "attach/remote_process.h"

namespace heapprofd {

// True if programs that a process executes gain their rights also while this process
// traces it: with CAP_SYS_PTRACE in the process's user namespace.
bool MayTraceExecs(pid_t pid);

// True if the thread waits inside execve or execveat.
bool IsInExec(pid_t tid);

// Waits until all threads of the process wait, outside of an exec, or 10 ms have passed.
// Returns false at once when one of them is inside an exec. Returns true at once where
// MayTraceExecs.
bool AwaitNoExec(const RemoteProcess& process);

}  // namespace heapprofd
