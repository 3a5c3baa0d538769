// Descriptors that go along with a message over a Unix socket (SCM_RIGHTS).
#pragma once

#include <sys/socket.h>

#include <span>
#include <vector>

#include "base/scoped_fd.h"

namespace heapprofd {

// Puts them into a message that is to be sent; they stay the caller's. `space` has
// CMSG_SPACE for all of them, is aligned as a cmsghdr, and outlives the message.
void PutFds(std::span<const int> fds, std::span<char> space, msghdr* message);

// Whether others may send descriptors to this socket, or to those that are accepted from
// it (Linux 6.16; until somebody refuses, they may). A descriptor that lies in a socket's
// queue is closed with it, by whoever closes it last, who then waits for whatever that
// takes: a file system of the sender's own making decides.
// False: the kernel is older.
bool RefuseFds(int socket);
bool AcceptFds(int socket);

// Takes over those of a message that has been received.
void TakeFds(msghdr* message, std::vector<ScopedFd>* fds);

}  // namespace heapprofd
