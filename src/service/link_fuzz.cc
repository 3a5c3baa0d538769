// What an engine, which may be its user's puppet, says to the front desk. As many
// descriptors go with it as the lowest bits of its first number say.
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/files/passed_fds.h"
#include "service/link.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heapprofd;
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
    return 0;
  const ScopedFd other(fds[0]);
  const Link link{ScopedFd(fds[1])};
  const std::vector<int> passed(size > 0 ? data[0] % 4 : 0, fds[0]);
  SendWithFds(other.get(), {reinterpret_cast<const char*>(data), size}, passed,
              MSG_DONTWAIT);
  auto message = link.Receive();
  if (message.ok() && message.value()) {
    const auto visitor = TakeVisitor(std::move(*message.value()));
    static_cast<void>(visitor);
  }
  return 0;
}
