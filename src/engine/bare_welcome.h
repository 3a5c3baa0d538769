// Answers to a program's Hello without a ring: that it is not wanted, or that it will be
// served.
#pragma once

#include "wire/handshake.h"

namespace heapprofd {

// Does not wait: what there is no room for is not said.
void SendBareWelcome(int connection, WelcomeStatus status);

}  // namespace heapprofd
