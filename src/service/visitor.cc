#include "service/visitor.h"

#include <linux/capability.h>
#include <linux/ioctl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/files/proc_files.h"
#include "engine/bare_welcome.h"
#include "sandbox/sandbox.h"
#include "service/control_channel.h"

namespace heapprofd {
namespace {

constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD of asm-generic/socket.h, Linux 6.5

constexpr size_t kMaxStatusSize = 16384;
constexpr unsigned long kUserNamespaceOf =  // PIDFD_GET_USER_NAMESPACE, Linux 6.11
    _IO(0xFF, 9);

// Older kernels give no descriptor of whoever connected: its number may then, in theory,
// mean another process by now. What is done to the process is checked again later.
ScopedFd PeerProcess(int fd, pid_t pid) {
  int process = -1;
  socklen_t size = sizeof(process);
  if (getsockopt(fd, SOL_SOCKET, kPeerPidfd, &process, &size) == 0)
    return ScopedFd(process);
  return ScopedFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool HasEnded(const Visitor& visitor) {
  pollfd ended{.fd = visitor.process.get(), .events = POLLIN, .revents = 0};
  return poll(&ended, 1, 0) != 0;
}

uint64_t CapabilitiesIn(const std::string& status_text) {
  return strtoull(StatusField(status_text, "CapEff").c_str(), nullptr, 16);
}

// One that has ended was another process.
bool IsOfOtherNamespace(const Visitor& visitor) {
  return !IsInOurUserNamespace(visitor.pid).value_or(false) || HasEnded(visitor);
}

// What the map of its ids does not tell: one can look like ours. No lock is needed for
// it, either. The kernel tells whoever may trace the process, and nobody else has much to
// lose.
bool IsKnownToBeElsewhere(const Visitor& visitor) {
  const ScopedFd theirs(ioctl(visitor.process.get(), kUserNamespaceOf, 0));

  struct stat its {};

  struct stat ours {};

  return theirs.valid() && fstat(theirs.get(), &its) == 0 &&
         stat("/proc/self/ns/user", &ours) == 0 && its.st_ino != ours.st_ino;
}

}  // namespace

Result<Visitor> Identify(UntrustedSocket connection) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  Visitor visitor;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.pid <= 0)
    return Status::FromErrno("cannot tell who has connected", errno);
  visitor.pid = peer.pid;
  visitor.user = peer.uid;
  visitor.group = peer.gid;
  visitor.process = PeerProcess(connection.get(), peer.pid);
  visitor.connection = std::move(connection);
  if (!visitor.process.valid())
    return Status(StatusCode::kNotFound, "whoever has connected is gone");
  return visitor;
}

// Who may trace can take over root's processes; of another PID name space he finds none.
// A service that may not trace, in a container, lends what whoever asks has himself.
bool HasRootsRights(const Visitor& visitor) {
  const std::string status =
      ReadProcFile(ProcPath(visitor.pid, "status"), kMaxStatusSize);
  const std::string own_status = ReadProcFile("/proc/thread-self/status", kMaxStatusSize);
  const uint64_t theirs = CapabilitiesIn(status);
  const uint64_t ours = CapabilitiesIn(own_status);
  const bool has_inner_id =
      StatusField(status, "NSpid").find_first_of(" \t") != std::string::npos;
  const bool may_as_much =
      (theirs & CapabilityBit(CAP_SYS_PTRACE)) != 0 || (ours & ~theirs) == 0;
  return !status.empty() && !own_status.empty() && may_as_much && !has_inner_id &&
         !IsKnownToBeElsewhere(visitor) && !IsOfOtherNamespace(visitor);
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
