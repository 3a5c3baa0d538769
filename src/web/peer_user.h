// Which user of this machine has the other end of a connection over the loopback: whoever
// floods a server spends the share of that user alone.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/scoped_fd.h"

namespace heapprofd {

struct Peer {
  uid_t user = 0;
  bool has_left = false;  // nobody has its socket open any more
};

class PeerUsers {
 public:
  PeerUsers();

  // Asks the kernel for the socket at the other end (sock_diag). nullopt: it does not tell,
  // or the connection comes from elsewhere. `connection`: an accepted one, of IPv4.
  std::optional<Peer> Of(int connection) const;

 private:
  ScopedFd kernel_;
};

}  // namespace heapprofd
