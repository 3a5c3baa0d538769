// What comes back on the socket of a virtual machine (attach_socket.h): written by
// whoever listens there.
#pragma once

#include <string>

#include "base/status.h"
#include "hotspot/errand.h"

namespace heapprofd {

// At most 16 KiB of the answer's text. An answer other than 0 is an error with it.
Result<std::string> ReceiveAnswer(int socket, const Sender& sender);

}  // namespace heapprofd
