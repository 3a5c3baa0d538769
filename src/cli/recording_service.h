// A service that runs recordings, as a process's main loop: behind a socket of its own,
// or as one user's engine behind the front desk of root's service.
#pragma once

#include <string>

#include "service/link.h"
#include "service/runtime_directory.h"

namespace heapprofd {

// Of this user alone. `listener`: see Reception. `exit_when_idle`: leaves when the last
// recording has ended. Gives an exit code.
int RunOwnService(std::unique_ptr<RuntimeDirectory> directory,
                  ScopedFd listener,
                  bool exit_when_idle);

// In a process of its own; leaves when there is nothing to do. `place`: the service's
// directory.
int RunEngine(Link link, const std::string& place);

}  // namespace heapprofd
