// An errand to a virtual machine, as its own user, and why one has failed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "hotspot/attach_socket.h"
#include "hotspot/errand.h"
#include "hotspot/java_process.h"

namespace heapprofd {

// With its handle and its root directory.
Errand ErrandTo(const JavaProcess& process,
                std::function<Result<std::string>(const Sender& sender)> run);

// What it answers: `ask` runs in the messenger. `stop_fd`: readable when it is no longer
// wanted. An error's message is a cause.
Result<std::string> AskOnErrand(
    const JavaProcess& process,
    const MachinePatience& patience,
    int stop_fd,
    const std::function<Result<std::string>(const Attachment& attachment)>& ask);

// For messages: `status` of RunErrand.
std::string CauseOf(const Status& status, const MachinePatience& patience);

}  // namespace heapprofd
