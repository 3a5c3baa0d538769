// Control messages come from any process that can reach the socket.
#include <sys/socket.h>

#include <cstdint>

#include "service/control_channel.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    return 0;
  const heapprofd::ScopedFd sender(fds[0]);
  heapprofd::ControlChannel channel{heapprofd::ScopedFd(fds[1])};
  send(sender.get(), data, size, MSG_DONTWAIT);
  while (true) {
    const auto message = channel.Receive();
    if (!message.ok() || !message.value())
      return 0;
  }
}
