#include "base/files/passed_fds.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace heapprofd {
namespace {

constexpr int kPassRights = 83;  // SO_PASSRIGHTS of asm-generic/socket.h, Linux 6.16

bool SetPassRights(int socket, int may_pass) {
  return setsockopt(socket, SOL_SOCKET, kPassRights, &may_pass, sizeof(may_pass)) == 0;
}

using FdSpace = std::array<char, CMSG_SPACE(kMaxPassedFds * sizeof(int))>;

void PutFds(const std::vector<int>& fds, FdSpace& space, msghdr* message) {
  if (fds.empty())
    return;
  const size_t bytes = fds.size() * sizeof(int);
  message->msg_control = space.data();
  message->msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* header = CMSG_FIRSTHDR(message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  memcpy(CMSG_DATA(header), fds.data(), bytes);
}

void TakeFds(msghdr* message, std::vector<ScopedFd>* fds) {
  for (cmsghdr* header = CMSG_FIRSTHDR(message); header != nullptr;
       header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
      continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds->emplace_back(fd);
    }
  }
}

}  // namespace

bool RefuseFds(int socket) {
  return SetPassRights(socket, 0);
}

bool AcceptFds(int socket) {
  return SetPassRights(socket, 1);
}

std::optional<size_t> SendWithFds(int socket,
                                  std::string_view bytes,
                                  const std::vector<int>& fds,
                                  int flags) {
  if (fds.size() > kMaxPassedFds) {
    errno = E2BIG;
    return std::nullopt;
  }
  alignas(cmsghdr) FdSpace control{};
  iovec part{.iov_base = const_cast<char*>(bytes.data()),  // is only read
             .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  PutFds(fds, control, &message);
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0 ? std::optional(static_cast<size_t>(sent)) : std::nullopt;
}

Packet ReceiveWithFds(int socket, size_t max_bytes, int flags) {
  Packet packet;
  packet.bytes.resize(max_bytes);
  alignas(cmsghdr) FdSpace control{};
  iovec part{.iov_base = packet.bytes.data(), .iov_len = max_bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  } while (got < 0 && errno == EINTR);
  packet.bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  packet.is_end = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  if (got >= 0)
    TakeFds(&message, &packet.fds);
  return packet;
}

}  // namespace heapprofd
