// Owner of one file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace heapprofd {

class ScopedFd {
 public:
  ScopedFd() = default;

  explicit ScopedFd(int fd) : fd_(fd) {}

  ScopedFd(ScopedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  ScopedFd& operator=(ScopedFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }

  ScopedFd(const ScopedFd&) = delete;
  ScopedFd& operator=(const ScopedFd&) = delete;

  ~ScopedFd() { reset(); }

  int get() const { return fd_; }

  bool valid() const { return fd_ >= 0; }

  // It is the caller's to close.
  int release() { return std::exchange(fd_, -1); }

  void reset(int fd = -1) {
    if (fd_ >= 0)
      close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace heapprofd
