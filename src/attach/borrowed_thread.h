// Running our first code in a thread of the target: which thread, how it maps memory for
// the client's image, how it runs the client's setup. The thread waits in our code to be
// put back, with all signals blocked, and puts itself back if nobody does, so that it
// does not matter if we die meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "attach/code_cave.h"
#include "attach/refusals.h"
#include "attach/remote_process.h"
#include "attach/thread/traced_thread.h"
#include "base/status.h"
#include "wire/attached_client.h"

namespace heapprofd {

// A thread that can run our code, stopped.
Result<TracedThread> BorrowThread(const RemoteProcess& process);

// Thread pointer of the main thread; 0 when that has ended or does not stop.
uint64_t MainThreadPointer(const RemoteProcess& process);

// Where a thread is while it runs our code.
struct OurCode {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t wait_begin = 0;   // from here to `end` it can be put back
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

// Maps the image's memory at `base`, from code that is already there. The thread is
// stopped before and after, in the same place. `hold_ticks` (of the time stamp counter):
// when it goes back by itself.
Status MapImage(const RemoteProcess& process,
                const CodeCave& cave,
                uint64_t base,
                uint64_t hold_ticks,
                TracedThread* thread);

// Runs `setup`, the code in the image at `base`; its request is in place. `take_files` is
// called when its descriptors wait for us. The thread is stopped before and after, in the
// same place. The result is that of the setup, which may have failed.
Result<SetupResult> RunSetup(const RemoteProcess& process,
                             uint64_t base,
                             const OurCode& setup,
                             TracedThread* thread,
                             const std::function<Status(const SetupResult&)>& take_files);

}  // namespace heapprofd
