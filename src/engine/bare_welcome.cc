#include "engine/bare_welcome.h"

#include <sys/socket.h>

namespace heapprofd {

void SendBareWelcome(int connection, WelcomeStatus status) {
  const Welcome welcome{.magic = kHandshakeMagic,
                        .version = kWireVersion,
                        .status = status,
                        .ring_size = 0,
                        .seed = 0};
  send(connection, &welcome, sizeof(welcome), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace heapprofd
