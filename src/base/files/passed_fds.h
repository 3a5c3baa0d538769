// Descriptors that go along with a message over a Unix socket (SCM_RIGHTS).
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/scoped_fd.h"

namespace heapprofd {

inline constexpr size_t kMaxPassedFds = 4;

// Sends at most so many with `bytes`, of which a stream may take a part only; they stay
// the caller's. `flags`: of sendmsg(2), without any it waits for room unless the socket
// is one that does not block. nullopt: errno says why.
std::optional<size_t> SendWithFds(int socket,
                                  std::string_view bytes,
                                  const std::vector<int>& fds,
                                  int flags = 0);

struct Packet {
  std::string bytes;
  std::vector<ScopedFd> fds;  // at most kMaxPassedFds
  bool is_end = false;        // of the connection
};

// What of a packet is longer than `max_bytes` is cut. `flags`: of recvmsg(2); without
// waiting no bytes may mean that there is none now.
Packet ReceiveWithFds(int socket, size_t max_bytes, int flags = MSG_DONTWAIT);

// Whether others may send descriptors to this socket, or to those that are accepted from
// it (Linux 6.16; until somebody refuses, they may). A descriptor that lies in a socket's
// queue is closed with it, by whoever closes it last, who then waits for whatever that
// takes: a file system of the sender's own making decides.
// False: the kernel is older.
bool RefuseFds(int socket);
bool AcceptFds(int socket);

}  // namespace heapprofd
