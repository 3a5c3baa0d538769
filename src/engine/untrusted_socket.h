// A connection to somebody who may be hostile.
//
// To close one can mean to wait for him: the last one to close a socket also closes the
// descriptors that lie in its queue, and a file of his own file system, or a socket that
// lingers, is closed when he pleases, in a wait that no signal ends. So descriptors are
// refused. Where they cannot be (before Linux 6.16, or when they were sent before anybody
// refused), a socket that has some in its queue is closed by a process that is there for
// nothing else.
#pragma once

#include <utility>

#include "base/scoped_fd.h"

namespace heapprofd {

class UntrustedSocket {
 public:
  UntrustedSocket() = default;

  explicit UntrustedSocket(ScopedFd fd);

  UntrustedSocket(UntrustedSocket&&) = default;

  UntrustedSocket& operator=(UntrustedSocket&& other) noexcept {
    std::swap(fd_, other.fd_);  // it closes what was ours
    return *this;
  }

  ~UntrustedSocket() {
    if (fd_.valid())
      Close();
  }

  int get() const { return fd_.get(); }

  bool valid() const { return fd_.valid(); }

  // From now on an ordinary descriptor: it is not the last one of its socket, or its user
  // is nobody else's.
  ScopedFd Release() { return std::move(fd_); }

 private:
  void Close();

  ScopedFd fd_;
};

}  // namespace heapprofd
