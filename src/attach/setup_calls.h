// What a borrowed thread does for us: it maps memory for the client's image, and then runs
// the image's setup. Here are the system calls that our code makes there, one after the
// other, and what the engine has to do between them; no other is executed.
//
// The two memory files are ours, and sealed before the process gets them: it makes a pair
// of sockets, we take one of them out of it and send the files over it.
#pragma once

#include <cstdint>

#include "attach/code_cave.h"
#include "attach/remote_process.h"
#include "attach/thread/traced_thread.h"
#include "base/status.h"
#include "wire/attached_client.h"
#include "wire/memory_files.h"

namespace heapprofd {

// Maps the image's memory at `base`, from code that is already there. The thread is
// stopped before and after, in the same place. `hold_ticks` (of the time stamp counter):
// when it goes back by itself, if we are gone.
Status MapImage(const RemoteProcess& process,
                const CodeCave& cave,
                uint64_t base,
                uint64_t hold_ticks,
                TracedThread* thread);

// Runs the setup in the image at `base`. `state` has the request and the last session's
// result, which are in place; its result becomes this session's. The thread is stopped
// before and after, in the same place.
Status RunSetup(const RemoteProcess& process,
                uint64_t base,
                const SharedMemory& memory,
                const SetupRequest& request,
                SetupResult* result,
                TracedThread* thread);

}  // namespace heapprofd
