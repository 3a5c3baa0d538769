// Somebody at a service's socket, described by the kernel and not by himself.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"

namespace heapprofd {

// What a process may do. Two of one user's can differ (newgrp, setpriv).
struct Rights {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups = {};  // supplementary ones, in order

  bool operator==(const Rights&) const = default;
};

struct Visitor {
  ScopedFd connection;
  ScopedFd process;  // pidfd: no other process is ever taken for it
  pid_t pid = 0;
  Rights rights = {};       // when it connected
  bool is_command = false;  // it speaks wire/control.h, else wire/handshake.h
  bool is_told_to_wait = false;
};

// Who is at the other end of `connection`. `is_command` is not known yet. kNotFound: it
// has ended.
Result<Visitor> Identify(ScopedFd connection);

// Tells a program, once, that it will be served.
void TellToWait(Visitor& visitor);

// Tells a program that nobody wants it.
void Decline(const Visitor& visitor);

}  // namespace heapprofd
