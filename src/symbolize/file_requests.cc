#include "symbolize/file_requests.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

#include "base/files/foreign_file.h"
#include "base/files/passed_fds.h"
#include "sandbox/trapped_call.h"
#include "symbolize/elf_identity.h"

namespace heapprofd {
namespace {

// A message with one descriptor, or none.
struct FdMessage {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  char byte = 0;
  iovec part{.iov_base = &byte, .iov_len = 1};
  msghdr header{};

  FdMessage() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
};

void SendFd(int socket, int fd) {
  FdMessage message;
  if (fd >= 0) {
    cmsghdr* const control = CMSG_FIRSTHDR(&message.header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &fd, sizeof(fd));
  } else {
    message.header.msg_controllen = 0;
  }
  sendmsg(socket, &message.header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// -1: there came none.
int ReceiveFd(int socket) {
  FdMessage message;
  int fd = -1;
  if (recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC) != 1)
    return fd;
  const cmsghdr* const control = CMSG_FIRSTHDR(&message.header);
  if (control != nullptr && control->cmsg_type == SCM_RIGHTS)
    memcpy(&fd, CMSG_DATA(control), sizeof(fd));
  return fd;
}

int request_socket = -1;  // of the handler

// In the middle of open(): nothing but system calls.
void AskForFile(int, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  auto* const call = static_cast<ucontext_t*>(context);
  int64_t result = -EACCES;
  if (info->si_syscall == SYS_openat && request_socket >= 0) {
    const auto* path = reinterpret_cast<const char*>(SecondArgument(*call));
    const size_t length = strnlen(path, PATH_MAX);
    if (length < PATH_MAX && send(request_socket, path, length, MSG_NOSIGNAL) > 0) {
      const int fd = ReceiveFd(request_socket);
      result = fd >= 0 ? fd : -ENOENT;
    }
  }
  SetResult(result, call);
  errno = saved_errno;
}

}  // namespace

FileRequests::FileRequests() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return;
  parser_ = ScopedFd(ends[0]);
  server_ = ScopedFd(ends[1]);
  RefuseFds(ends[1]);
}

void FileRequests::InstallInParser() const {
  request_socket = parser_.get();

  struct sigaction action {};

  action.sa_sigaction = AskForFile;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
}

void FileRequests::Serve() const {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = recv(server_.get(), path.data(), path.size(), MSG_DONTWAIT);
  if (length <= 0)
    return;
  SendFd(server_.get(),
         OpenSplitDwarf(std::string(path.data(), static_cast<size_t>(length))).get());
}

ScopedFd OpenSplitDwarf(const std::string& path) {
  ScopedFd fd = OpenForeignPath(path);
  const auto identity = IdentifyElf(fd.get());
  if (!identity || !identity->has_split_dwarf)
    fd.reset();
  return fd;
}

}  // namespace heapprofd
