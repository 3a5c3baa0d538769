// Which signals matter to a traced thread.
#pragma once

#include <sys/types.h>

namespace heapprofd {

// Whether the process has a handler for `signal`. One without is not noticed by a call
// that it arrives in, but by the kernel when the thread is traced.
bool IsCaught(pid_t tid, int signal);

// Whether a handler runs as soon as the thread goes on. A traced thread is sent signals,
// too, that it ignores: those do not count.
bool IsHandlerDue(pid_t tid);

}  // namespace heapprofd
