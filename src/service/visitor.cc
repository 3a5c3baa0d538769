#include "service/visitor.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/pending_clients.h"
#include "wire/handshake.h"

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

Result<Visitor> Identify(ScopedFd connection) {
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

void TellToWait(Visitor& visitor) {
  if (!visitor.is_command && !std::exchange(visitor.is_told_to_wait, true))
    PendingClients::TellToWait(visitor.connection.get());
}

void Decline(const Visitor& visitor) {
  const Welcome decline{.magic = kHandshakeMagic,
                        .version = kWireVersion,
                        .status = WelcomeStatus::kDecline,
                        .ring_size = 0,
                        .seed = 0};
  send(visitor.connection.get(), &decline, sizeof(decline), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace heapprofd
