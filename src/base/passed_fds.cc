#include "base/passed_fds.h"

#include <cstring>

namespace heapprofd {
namespace {

constexpr int kPassRights = 83;  // SO_PASSRIGHTS of asm-generic/socket.h, Linux 6.16

bool SetPassRights(int socket, int may_pass) {
  return setsockopt(socket, SOL_SOCKET, kPassRights, &may_pass, sizeof(may_pass)) == 0;
}

}  // namespace

bool RefuseFds(int socket) {
  return SetPassRights(socket, 0);
}

bool AcceptFds(int socket) {
  return SetPassRights(socket, 1);
}

void PutFds(std::span<const int> fds, std::span<char> space, msghdr* message) {
  if (fds.empty())
    return;
  message->msg_control = space.data();
  message->msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* header = CMSG_FIRSTHDR(message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size_bytes());
  memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
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

}  // namespace heapprofd
