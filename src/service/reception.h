// The socket at which programs report and commands ask: takes connections, finds out from
// the kernel who they are and from their first word what they want. Everybody here may be
// hostile: nobody is waited for, and one user gets a share of the places only.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "service/visitor.h"

namespace heapprofd {

class Reception {
 public:
  // `listener`: a listening socket from whoever supervises the service, or invalid: one
  // is made at `path`, and removed in the end. Root's is open to everybody.
  static Result<std::unique_ptr<Reception>> Open(const std::string& path,
                                                 ScopedFd listener);

  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  // Readable when there is something to do.
  int fd() const { return events_.get(); }

  // Milliseconds until somebody's patience is over; -1: nobody is here.
  int MillisecondsToNext() const;

  // A turn: passes on those that have said what they are.
  void Serve(const std::function<void(Visitor)>& admit);

  // In a child: the socket is the parent's to remove.
  void LeaveToParent() { owns_socket_ = false; }

  // Nobody has connected without having been passed on.
  bool is_empty() const { return waiting_.empty(); }

 private:
  struct Waiting {
    Visitor visitor;
    uint64_t deadline_ns;
  };

  using Place = std::list<Waiting>::iterator;

  explicit Reception(std::string path) : path_(std::move(path)) {}

  Status Listen();
  void Accept();
  // From now on somebody else's.
  Visitor Take(Place place);

  std::string path_;
  bool owns_socket_ = false;
  ScopedFd listener_;
  ScopedFd events_;              // epoll: silent ones cost nothing
  std::list<Waiting> waiting_;   // in order of arrival
  std::map<int, Place> places_;  // by descriptor
  std::map<uid_t, size_t> count_of_user_;
};

}  // namespace heapprofd
