// A service that runs recordings, as a process's main loop.
#pragma once

#include <memory>

#include "base/scoped_fd.h"
#include "service/runtime_directory.h"

namespace heapprofd {

// Serves until it is told to end. `listener`: see Reception. `exit_when_idle`: leaves when
// the last recording has ended, but gives the first one its time to come. Gives an exit
// code.
int RunService(std::unique_ptr<RuntimeDirectory> directory,
               ScopedFd listener,
               bool exit_when_idle);

}  // namespace heapprofd
