#include "engine/untrusted_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "base/files/passed_fds.h"
#include "sandbox/sandbox.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxClosers = 64;  // at a time; what is left waits in here, open
constexpr size_t kPieceSize = size_t{64} << 10;

// Whether there are descriptors in the queue of a socket to which nothing can be sent any
// more. They stay there, what was before them is dropped.
bool HoldsFds(int socket) {
  std::array<char, kPieceSize> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (true) {
    iovec part{.iov_base = piece.data(), .iov_len = piece.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t got = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
    // Without space for descriptors this says that there are some.
    if ((message.msg_flags & MSG_CTRUNC) != 0)
      return true;
    if (got <= 0 ||
        recv(socket, piece.data(), static_cast<size_t>(got), MSG_DONTWAIT) <= 0)
      return false;
  }
}

// The processes that close what others wait for.
class Closers {
 public:
  void Add(ScopedFd socket) {
    if (owner_ != getpid())  // a child's descriptors are others
      *this = Closers();
    std::erase_if(running_,
                  [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
    waiting_.push_back(socket.release());
    while (!waiting_.empty() && running_.size() < kMaxClosers && Start(waiting_.back()))
      waiting_.pop_back();
  }

 private:
  // In the end the new process has the only descriptor, and its end closes it.
  bool Start(int socket) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      return false;
    const ScopedFd go(ends[0]);
    const ScopedFd is_ours(ends[1]);
    const pid_t pid = fork();
    if (pid == 0) {
      CloseAllBut(std::array{go.get(), socket});
      char byte = 0;
      const ssize_t ignored = read(go.get(), &byte, 1);
      static_cast<void>(ignored);
      _exit(0);
    }
    if (pid < 0)
      return false;
    running_.push_back(pid);
    close(socket);
    return true;
  }

  pid_t owner_ = getpid();
  std::vector<pid_t> running_;
  std::vector<int> waiting_;  // sockets
};

}  // namespace

UntrustedSocket::UntrustedSocket(ScopedFd fd) : fd_(std::move(fd)) {
  RefuseFds(fd_.get());
}

void UntrustedSocket::Close() {
  static Closers closers;
  ScopedFd socket = std::move(fd_);
  shutdown(socket.get(), SHUT_RDWR);
  if (HoldsFds(socket.get()))
    closers.Add(std::move(socket));
}

}  // namespace heapprofd
