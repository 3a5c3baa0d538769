// Somebody at a service's socket, described by the kernel and not by himself.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "engine/untrusted_socket.h"

namespace heapprofd {

struct Visitor {
  UntrustedSocket connection;
  ScopedFd process;  // pidfd: no other process is ever taken for it
  pid_t pid = 0;
  uid_t user = 0;  // this and the group: when it connected
  gid_t group = 0;
  bool is_command = false;  // it speaks wire/control.h, else wire/handshake.h
};

// Who is at the other end of `connection`. `is_command` is not known yet. kNotFound: it
// has ended.
Result<Visitor> Identify(UntrustedSocket connection);

// True if a process that connected as user 0 may do as much as a service of root's. Root
// of a user name space, root of a container that has the socket, and processes without
// capabilities have that id, too.
bool HasRootsRights(const Visitor& visitor);

// Tells a program that nobody wants it.
void Decline(const Visitor& visitor);

// Tells a command why it is not served.
void Refuse(const Visitor& visitor, const std::string& why);

}  // namespace heapprofd
