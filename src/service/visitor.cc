#include "service/visitor.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files/proc_files.h"
#include "engine/bare_welcome.h"
#include "service/control_channel.h"

namespace heapprofd {
namespace {

constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD of asm-generic/socket.h, Linux 6.5

constexpr size_t kMaxGroups = 65'536;  // NGROUPS_MAX

// Older kernels give no descriptor of whoever connected: its number may then, in theory,
// mean another process by now. What is done to the process is checked again later.
ScopedFd PeerProcess(int fd, pid_t pid) {
  int process = -1;
  socklen_t size = sizeof(process);
  if (getsockopt(fd, SOL_SOCKET, kPeerPidfd, &process, &size) == 0)
    return ScopedFd(process);
  return ScopedFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool PeerGroups(int fd, std::vector<gid_t>* groups) {
  socklen_t size = 0;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, nullptr, &size) == 0)
    return true;  // none
  if (errno != ERANGE || size > kMaxGroups * sizeof(gid_t))
    return false;
  groups->resize(size / sizeof(gid_t));
  if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups->data(), &size) != 0)
    return false;
  std::sort(groups->begin(), groups->end());
  return true;
}

}  // namespace

Result<Visitor> Identify(UntrustedSocket connection) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  Visitor visitor;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.pid <= 0 || !PeerGroups(connection.get(), &visitor.rights.groups))
    return Status::FromErrno("cannot tell who has connected", errno);
  visitor.pid = peer.pid;
  visitor.rights.user = peer.uid;
  visitor.rights.group = peer.gid;
  visitor.process = PeerProcess(connection.get(), peer.pid);
  visitor.connection = std::move(connection);
  if (!visitor.process.valid())
    return Status(StatusCode::kNotFound, "whoever has connected is gone");
  return visitor;
}

bool IsOfOtherNamespace(const Visitor& visitor) {
  pollfd ended{.fd = visitor.process.get(), .events = POLLIN, .revents = 0};
  return !IsInOurUserNamespace(visitor.pid).value_or(false) ||
         poll(&ended, 1, 0) != 0;  // that was somebody else
}

void TellToWait(Visitor& visitor) {
  if (!visitor.is_command && !std::exchange(visitor.is_told_to_wait, true))
    SendBareWelcome(visitor.connection.get(), WelcomeStatus::kWait);
}

void Decline(const Visitor& visitor) {
  SendBareWelcome(visitor.connection.get(), WelcomeStatus::kDecline);
}

void Refuse(const Visitor& visitor, const std::string& why) {
  const Status ignored =
      SendControlMessage(visitor.connection.get(), ControlType::kUnavailable, why, {});
  static_cast<void>(ignored);  // it is gone
}

}  // namespace heapprofd
