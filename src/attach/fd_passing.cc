#include "attach/fd_passing.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "base/passed_fds.h"

namespace heapprofd {

bool SendWithFds(int socket, std::string_view bytes, const std::vector<int>& fds) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxPassedFds * sizeof(int))> control{};
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  PutFds(fds, control, &message);
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

Packet ReceiveWithFds(int socket, size_t max_bytes) {
  Packet packet;
  packet.bytes.resize(max_bytes);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxPassedFds * sizeof(int))> control{};
  iovec part{.iov_base = packet.bytes.data(), .iov_len = max_bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  packet.bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  packet.is_end =
      got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  if (got < 0)
    return packet;
  TakeFds(&message, &packet.fds);
  return packet;
}

}  // namespace heapprofd
