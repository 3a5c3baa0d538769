// The socket at which programs report and commands ask: takes connections, finds out from
// their first word what they want and from the kernel who they are.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/files/file_place.h"
#include "base/scoped_fd.h"
#include "base/status.h"
#include "engine/pending_clients.h"
#include "service/visitor.h"

namespace heapprofd {

class Reception {
 public:
  // `listener`: a listening socket from whoever supervises the service, or invalid: one
  // is made at `place`, and removed in the end. Root's is open to everybody.
  static Result<std::unique_ptr<Reception>> Open(const FilePlace& place,
                                                 ScopedFd listener);

  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  // What becomes readable when there is something to do.
  void AddTo(std::vector<pollfd>* fds) const;

  // Milliseconds until there is something to do in any case; -1: no need.
  int MillisecondsToNext() const;

  // A turn: passes on those that have said what they are.
  void Serve(const std::function<void(Visitor)>& admit);

  // Processes that connected when there was no room for them, since the last call.
  std::vector<pid_t> TakeTurnedAway() { return clients_.TakeTurnedAway(); }

  // Nobody has connected without having been passed on.
  bool is_empty() const { return clients_.empty(); }

  // In a child: the socket is the parent's to remove, and the connections are his.
  void LeaveToParent() {
    owns_socket_ = false;
    clients_.LeaveToParent();
  }

 private:
  explicit Reception(FilePlace place);

  Status Listen();

  FilePlace place_;
  bool owns_socket_ = false;
  bool is_behind_ = false;  // somebody was left for the next turn
  ScopedFd listener_;
  PendingClients clients_;
};

}  // namespace heapprofd
