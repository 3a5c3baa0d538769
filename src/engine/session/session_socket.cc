#include "engine/session/session_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/fd_path.h"
#include "base/files/passed_fds.h"
#include "base/files/temporary_directory.h"
#include "base/random_seed.h"
#include "base/unix_address.h"
#include "engine/session/ended_sockets.h"
#include "wire/control.h"

namespace heapprofd {
namespace {

// Root's programs may become those of other users and must still reach it. The
// longest path of a socket is 107 bytes.
std::string RuntimeDirectory() {
  constexpr size_t kMaxLength = 60;
  const char* runtime = geteuid() != 0 ? getenv("XDG_RUNTIME_DIR") : nullptr;
  if (runtime != nullptr && access(runtime, W_OK) == 0 && strlen(runtime) < kMaxLength)
    return runtime;
  return TemporaryDirectory([](const std::string& path) {
    return path.size() < kMaxLength && (geteuid() != 0 || IsOpenToAll(path));
  });
}

}  // namespace

Result<std::unique_ptr<SessionSocket>> SessionSocket::Create(Listener listener) {
  std::unique_ptr<SessionSocket> created(new SessionSocket(std::move(listener)));
  HPD_TRY(created->Listen());
  return created;
}

SessionSocket::~SessionSocket() {
  if (!path_.empty())
    unlink(path_.c_str());
  for (const std::string& directory : {directory_, parent_directory_}) {
    if (!directory.empty())
      rmdir(directory.c_str());
  }
}

// A target may change its user id and then fork a child that reports: as root,
// let it through. Only those who know the name can, which is in the targets'
// environments.
Status SessionSocket::OpenToOtherUsers() {
  parent_directory_ = directory_;
  char name[20];
  snprintf(name, sizeof(name), "/%016" PRIx64, RandomSeed());
  directory_ += name;
  if (mkdir(directory_.c_str(), 0711) != 0)
    return Status::FromErrno("cannot create " + directory_, errno);
  chmod(directory_.c_str(), 0711);  // whatever the umask
  chmod(parent_directory_.c_str(), 0711);
  return {};
}

Status SessionSocket::Listen() {
  const std::string runtime = RuntimeDirectory();
  RemoveEndedSockets(runtime);
  std::string pattern = runtime + "/" + kSessionDirectory + "XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr)
    return Status::FromErrno(
        "cannot create a directory for the session's socket in " + pattern, errno);
  directory_ = pattern;
  if (geteuid() == 0)
    HPD_TRY(OpenToOtherUsers());
  path_ = directory_ + "/" + kSessionSocketName;
  socket_ = ScopedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const ScopedFd directory(
      open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!socket_.valid() || !directory.valid())
    return Status::FromErrno("cannot create the session's socket", errno);
  // By a path that /proc/net/unix may show to everybody.
  const std::string path = FdPath(directory.get()) + "/new";
  const sockaddr_un address = UnixAddress(path).value();
  RefuseFds(socket_.get());
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
          0 ||
      listen(socket_.get(), SOMAXCONN) != 0)
    return Status::FromErrno("cannot listen on " + path_, errno);
  chmod(path.c_str(), geteuid() == 0 ? 0666 : 0600);
  // From here on who finds it under this name, and nobody there, may remove it.
  if (rename(path.c_str(), path_.c_str()) != 0)
    return Status::FromErrno("cannot listen on " + path_, errno);
  return {};
}

void SessionSocket::AddTo(std::vector<pollfd>* fds) const {
  fds->push_back({.fd = socket_.get(), .events = POLLIN, .revents = 0});
  clients_.AddTo(fds);
}

bool SessionSocket::Serve() {
  const bool more_wait = socket_.valid() && clients_.Accept(socket_.get());
  const bool more_speak = clients_.Serve(
      [this](PendingClients::Client& client, uint64_t magic) { Hear(client, magic); });
  is_behind_ = more_wait || more_speak;
  return is_behind_;
}

void SessionSocket::Close() {
  constexpr int kLastTurns = 256;
  if (!socket_.valid())
    return;
  // What was said before the end counts.
  for (int turn = 0; Serve() && turn < kLastTurns; ++turn) {
  }
  clients_.clear();
  is_behind_ = false;
  socket_.reset();
  unlink(path_.c_str());
}

// A client says one thing, in one piece.
void SessionSocket::Hear(PendingClients::Client& client, uint64_t magic) {
  const bool may_control = client.peer.uid == 0 || client.peer.uid == geteuid();
  if (magic == kControlMagic && may_control && control_handler_)
    return control_handler_(client.fd.Release());
  std::array<std::byte, sizeof(ExecNotice)> message{};
  const ssize_t size =
      recv(client.fd.get(), message.data(), message.size(), MSG_DONTWAIT);
  Hello hello{};
  ExecNotice notice{};
  if (magic == kHandshakeMagic && size == static_cast<ssize_t>(sizeof(hello))) {
    memcpy(&hello, message.data(), sizeof(hello));
    listener_.hello(hello, client);
  } else if (magic == kExecNoticeMagic && size == static_cast<ssize_t>(sizeof(notice))) {
    memcpy(&notice, message.data(), sizeof(notice));
    if (notice.version == kWireVersion)
      listener_.exec_notice(notice, client.peer.pid);
  }
}

}  // namespace heapprofd
