// An engine's answer to a program that has asked for a session, for tests.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstring>

#include "wire/handshake.h"

namespace heapprofd {

// Sends `welcome` and the two files of a session's shared memory. False: errno tells why.
inline bool SendWelcome(int connection,
                        Welcome welcome,
                        const std::array<int, 2>& files) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(files))] = {};
  iovec part{.iov_base = &welcome, .iov_len = sizeof(welcome)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(files));
  memcpy(CMSG_DATA(header), files.data(), sizeof(files));
  return sendmsg(connection, &message, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof(welcome));
}

}  // namespace heapprofd
