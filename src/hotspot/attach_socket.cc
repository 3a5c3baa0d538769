#include "hotspot/attach_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/fd_path.h"
#include "base/files/open_resolved.h"
#include "base/format.h"
#include "base/unix_address.h"
#include "hotspot/attach_answer.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPauseNs = 20'000'000;

std::string SocketName(const JavaProcess& process) {
  return ".java_pid" + std::to_string(process.inner_pid);
}

// The file that tells a virtual machine that SIGQUIT means to listen.
class Trigger {
 public:
  static Result<Trigger> Create(const JavaProcess& process, int temporary) {
    const std::string name = ".attach_pid" + std::to_string(process.inner_pid);

    struct stat status {};

    constexpr int kAttempts = 10;  // another one who asks may remove his in between
    int error = EEXIST;
    bool is_there = false;
    for (int i = 0; i < kAttempts && error == EEXIST && !is_there; ++i) {
      const ScopedFd fd(openat(temporary, name.c_str(),
                               O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
                               0600));
      if (fd.valid())
        return Trigger(temporary, name);
      error = errno;
      is_there = error == EEXIST &&
                 fstatat(temporary, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    }
    if (!is_there)
      return Status::FromErrno("its /tmp/" + name + " cannot be made", error);
    if (status.st_uid != process.user)
      return Status(StatusCode::kUnavailable, "its /tmp/" + name + " belongs to user " +
                                                  std::to_string(status.st_uid) +
                                                  "; remove that");
    return Trigger(-1, "");  // of somebody who asks, too: it is his to remove
  }

  Trigger(Trigger&& other) noexcept
      : temporary_(std::exchange(other.temporary_, -1)), name_(std::move(other.name_)) {}

  Trigger& operator=(Trigger&&) = delete;

  ~Trigger() {
    if (temporary_ >= 0)
      unlinkat(temporary_, name_.c_str(), 0);
  }

 private:
  Trigger(int temporary, std::string name)
      : temporary_(temporary), name_(std::move(name)) {}

  int temporary_;  // -1: there is nothing to remove
  std::string name_;
};

// The socket is looked at before anything is done with it, and connected to by that look:
// a path could lead elsewhere the second time.
Result<ScopedFd> OpenSocketFile(const JavaProcess& process, int temporary) {
  ScopedFd file(
      openat(temporary, SocketName(process).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid())
    return errno == ENOENT ? Status(StatusCode::kNotFound, "")
                           : Status::FromErrno("its socket cannot be reached", errno);

  struct stat status {};

  if (fstat(file.get(), &status) != 0 || !S_ISSOCK(status.st_mode))
    return Status(StatusCode::kUnavailable,
                  "its /tmp/" + SocketName(process) + " is no socket; remove that");
  if (status.st_uid != process.user)
    return Status(StatusCode::kUnavailable,
                  "its /tmp/" + SocketName(process) + " belongs to user " +
                      std::to_string(status.st_uid) + "; remove that");
  return file;
}

// Whoever called listen(2) on the other end.
Status CheckPeer(const JavaProcess& process, int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return Status::FromErrno("who listens at its socket is not known", errno);
  if (peer.pid != process.pid || peer.uid != process.user)
    return Status(StatusCode::kUnavailable, "process " + std::to_string(peer.pid) +
                                                " of user " + std::to_string(peer.uid) +
                                                " listens in its place at its /tmp/" +
                                                SocketName(process) + "; end that");
  return {};
}

// kNotFound: nobody listens. kTryAgain: too many others are waiting to be heard.
Result<ScopedFd> TryToConnect(const JavaProcess& process, int temporary) {
  HPD_TRY_ASSIGN(const ScopedFd file, OpenSocketFile(process, temporary));
  ScopedFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = UnixAddress(FdPath(file.get())).value();
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0) {
    HPD_TRY(CheckPeer(process, socket.get()));
    return socket;
  }
  if (errno == ECONNREFUSED)
    return Status(StatusCode::kNotFound, "");
  if (errno == EAGAIN || errno == EINTR)
    return Status(StatusCode::kTryAgain, "");
  return Status::FromErrno("its socket cannot be connected to", errno);
}

Status SendQuit(const JavaProcess& process) {
  if (!CatchesQuit(process.pid))
    return Status(StatusCode::kUnavailable, "it has ceased to handle SIGQUIT");
  if (syscall(SYS_pidfd_send_signal, process.handle.get(), SIGQUIT, nullptr, 0) != 0)
    return Status::FromErrno("it cannot be sent SIGQUIT", errno);
  return {};
}

bool IsWorthWaiting(const Status& status) {
  return status.code() == StatusCode::kNotFound || status.code() == StatusCode::kTryAgain;
}

Status NotConnected(StatusCode last, const MachinePatience& patience) {
  const std::string time =
      FormatDuration(static_cast<double>(patience.until_it_listens_ns) / 1e9);
  if (last == StatusCode::kTryAgain)
    return Status(StatusCode::kUnavailable,
                  "for " + time +
                      " so many others have waited to be heard by it that nobody "
                      "else may; try again later");
  return Status(last, "it has not begun to listen within " + time +
                          "; if it has printed its threads instead, start it without "
                          "-XX:+DisableAttachMechanism, and if not, " +
                          patience.advice);
}

Result<ScopedFd> AwaitConnection(const Attachment& attachment) {
  const uint64_t begin = MonotonicNs();
  while (true) {
    Result<ScopedFd> socket =
        TryToConnect(attachment.process, attachment.temporary.get());
    if (socket.ok() || !IsWorthWaiting(socket.status()))
      return socket;
    if (MonotonicNs() - begin >= attachment.patience.until_it_listens_ns)
      return NotConnected(socket.status().code(), attachment.patience);
    HPD_TRY(attachment.sender.Pause(kPauseNs));
  }
}

}  // namespace

Result<ScopedFd> OpenTemporary(const JavaProcess& process) {
  ScopedFd temporary =
      OpenResolved(process.root.get(), "tmp", O_PATH | O_DIRECTORY | O_CLOEXEC,
                   RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
  if (!temporary.valid())
    return Status::FromErrno("its /tmp cannot be reached", errno);
  return temporary;
}

Result<Attachment> OpenAttachment(const JavaProcess& process,
                                  const Sender& sender,
                                  const MachinePatience& patience) {
  sender.Tell("its /tmp being looked up");
  HPD_TRY_ASSIGN(ScopedFd temporary, OpenTemporary(process));
  return Attachment{process, std::move(temporary), sender, patience};
}

Result<ScopedFd> ConnectTo(const Attachment& attachment) {
  const JavaProcess& process = attachment.process;
  Result<ScopedFd> socket = TryToConnect(process, attachment.temporary.get());
  if (socket.ok() || !IsWorthWaiting(socket.status()))
    return socket;
  if (socket.status().code() == StatusCode::kTryAgain)
    return AwaitConnection(attachment);
  HPD_TRY_ASSIGN(const Trigger trigger,
                 Trigger::Create(process, attachment.temporary.get()));
  HPD_TRY(SendQuit(process));
  return AwaitConnection(attachment);
}

Status SendQuestion(int socket, const AttachQuestion& question, const Sender& sender) {
  std::string bytes;
  for (const std::string& word : {std::string("1"), question.command, question.first,
                                  question.second, std::string()})
    bytes.append(word).append(1, '\0');
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t count = send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count >= 0)
      rest.remove_prefix(static_cast<size_t>(count));
    else if (errno == EAGAIN || errno == EINTR)
      HPD_TRY(sender.Await(socket, POLLOUT, Sender::kAsLong));
    else
      return Status::FromErrno("it does not take the question", errno);
  }
  return {};
}

Result<std::string> AskMachine(const Attachment& attachment,
                               const AttachQuestion& question) {
  HPD_TRY_ASSIGN(const ScopedFd socket, ConnectTo(attachment));
  HPD_TRY(SendQuestion(socket.get(), question, attachment.sender));
  return ReceiveAnswer(socket.get(), attachment.sender);
}

}  // namespace heapprofd
