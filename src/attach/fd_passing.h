// Packets with descriptors in them, over a SOCK_SEQPACKET socket.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/scoped_fd.h"

namespace heapprofd {

inline constexpr size_t kMaxPassedFds = 4;

// Waits for room, unless the socket is one that does not block. False: errno says why.
bool SendWithFds(int socket, std::string_view bytes, const std::vector<int>& fds);

struct Packet {
  std::string bytes;
  std::vector<ScopedFd> fds;
  bool is_end = false;  // of the connection
};

// Does not wait. What is longer than `max_bytes` comes cut; no bytes: there is none now.
Packet ReceiveWithFds(int socket, size_t max_bytes);

}  // namespace heapprofd
