// Which thread of the target runs our code (attach/setup_calls.h), and how one is found
// that an engine which was killed has left there. The thread waits in our code to be put
// back, with all signals blocked, and puts itself back if nobody does, so that it does
// not matter if we die meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "attach/remote_process.h"
#include "attach/thread/traced_thread.h"
#include "base/status.h"

namespace heapprofd {

// A thread that can run our code, stopped.
Result<TracedThread> BorrowThread(const RemoteProcess& process);

// Thread pointer of the main thread; 0 when that has ended or does not stop.
uint64_t MainThreadPointer(const RemoteProcess& process);

// Where a thread is while it runs our code.
struct OurCode {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t stack_begin = 0;  // 0: the thread's own
  uint64_t stack_end = 0;
};

// Whether one of these stopped threads runs our code, or will return to it from a signal
// handler.
bool IsAnyIn(const std::vector<TracedThread>& threads, const OurCode& code);

// An engine that was killed, or that has given up on a thread that got no processor or was
// stopped, has left it in our code, whose parameters must not change then. Returns when
// there is none; waits for it.
Status AwaitStrayThread(const RemoteProcess& process, const OurCode& code);

}  // namespace heapprofd
