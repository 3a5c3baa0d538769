// Somebody at a service's socket, described by the kernel and not by himself.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "engine/untrusted_socket.h"

namespace heapprofd {

// What a process may do. Two of one user's can differ (newgrp, setpriv).
struct Rights {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups = {};  // supplementary ones, in order

  bool operator==(const Rights&) const = default;
};

struct Visitor {
  UntrustedSocket connection;
  ScopedFd process;  // pidfd: no other process is ever taken for it
  pid_t pid = 0;
  Rights rights = {};       // when it connected
  bool is_command = false;  // it speaks wire/control.h, else wire/handshake.h
  bool is_told_to_wait = false;
  // For whoever lets him wait or hands him on.
  uint64_t number = 0;
  uint64_t deadline_ns = 0;  // MonotonicNs
  uint64_t others = 0;       // recordings of all other users
};

// Who is at the other end of `connection`. `is_command` is not known yet. kNotFound: it
// has ended.
Result<Visitor> Identify(UntrustedSocket connection);

// Whether he lives among user ids of somebody's own making (user_namespaces(7)), of which
// one person can have thousands.
bool IsOfOtherNamespace(const Visitor& visitor);

// Whether one who connected as user 0 may do as much as a service of root's. Others have
// that id as well: root of a user name space or a container to which the socket leads,
// and whoever has given up his capabilities.
bool HasRootsRights(const Visitor& visitor);

// Tells a program, once, that it will be served.
void TellToWait(Visitor& visitor);

// Tells a program that nobody wants it.
void Decline(const Visitor& visitor);

// Tells a command why it is not served.
void Refuse(const Visitor& visitor, const std::string& why);

}  // namespace heapprofd
