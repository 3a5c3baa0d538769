#include "engine/session.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr size_t kRecordsPerTurn =
    20'000;  // of one target, before the others get their turn
constexpr uint64_t kBusyNs =
    300'000'000;  // after activity the rings are looked at every millisecond
constexpr int kBusyWaitMs = 1;
constexpr size_t kMaxTargets = 100'000;

std::string RuntimeDirectory() {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && access(runtime, W_OK) == 0 && strlen(runtime) < 60)
    return runtime;
  return "/tmp";
}

bool SendWelcome(int connection,
                 const heapprofd::Welcome& welcome,
                 const int* fds,
                 size_t fd_count) {
  heapprofd::Welcome copy = welcome;
  iovec part{.iov_base = &copy, .iov_len = sizeof(copy)};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd_count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
  }
  return sendmsg(connection, &message, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof(copy));
}

uint64_t RandomSeed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != static_cast<ssize_t>(sizeof(seed)))
    seed = MonotonicNs();
  return seed | 1;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Create(const SessionConfig& config) {
  std::unique_ptr<Session> session(new Session(config));
  session->clock_.Update();
  HPD_TRY(session->Listen());
  return session;
}

Session::~Session() {
  if (!socket_path_.empty())
    unlink(socket_path_.c_str());
  if (!directory_.empty())
    rmdir(directory_.c_str());
}

Status Session::Listen() {
  std::string pattern = RuntimeDirectory() + "/heap_profile-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr)
    return Status::FromErrno(
        "cannot create a directory for the session's socket in " + pattern, errno);
  directory_ = pattern;
  // A target may change its user id and then fork a child that reports: as root, let it
  // through. Who it is comes from the kernel (SO_PEERCRED).
  chmod(directory_.c_str(), geteuid() == 0 ? 0711 : 0700);
  socket_path_ = directory_ + "/socket";
  listener_ = ScopedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.valid())
    return Status::FromErrno("cannot create the session's socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, socket_path_.c_str(), socket_path_.size() + 1);
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
          0 ||
      listen(listener_.get(), SOMAXCONN) != 0)
    return Status::FromErrno("cannot listen on " + socket_path_, errno);
  chmod(socket_path_.c_str(), geteuid() == 0 ? 0666 : 0600);
  return {};
}

std::string Session::EnvironmentFor(pid_t pid) const {
  if (config_.follow_children)
    return socket_path_;
  return std::to_string(pid) + "," + socket_path_;
}

void Session::Poll(int max_wait_ms, int wake_fd) {
  const bool did_read = DrainAll();
  if (did_read || !live_.empty())
    busy_until_ns_ = did_read ? clock_.last_ns() + kBusyNs : busy_until_ns_;
  int wait_ms = clock_.last_ns() < busy_until_ns_ ? std::min(kBusyWaitMs, max_wait_ms)
                                                  : max_wait_ms;
  if (did_read)
    wait_ms = 0;
  std::vector<pollfd> fds;
  fds.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  fds.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  fds.push_back({.fd = exec_watcher_ != nullptr ? exec_watcher_->fd() : -1,
                 .events = POLLIN,
                 .revents = 0});
  for (const LiveTarget& live : live_)
    fds.push_back({.fd = live.pidfd.get(), .events = POLLIN, .revents = 0});
  if (poll(fds.data(), fds.size(), wait_ms) <= 0)
    return;
  if (fds[0].revents != 0)
    AcceptClients();
  if (fds[2].revents != 0)
    AdoptCaught();
  ReapExited();
}

bool Session::DrainAll() {
  clock_.Update();
  bool did_read = false;
  for (const LiveTarget& live : live_) {
    did_read |= live.target->Drain(kRecordsPerTurn, /*writers_gone=*/false);
    live.target->Tick();
  }
  return did_read;
}

void Session::AcceptClients() {
  while (true) {
    ScopedFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid())
      return;
    Welcome(std::move(connection));
  }
}

void Session::Welcome(ScopedFd connection) {
  const timeval patience{.tv_sec = 0, .tv_usec = 200'000};
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  Hello hello{};
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
      peer.pid <= 0 || (geteuid() != 0 && peer.uid != geteuid()))
    return;
  if (recv(connection.get(), &hello, sizeof(hello), 0) !=
          static_cast<ssize_t>(sizeof(hello)) ||
      hello.magic != kHandshakeMagic)
    return;
  Status status;
  if (hello.version != kWireVersion)
    status =
        Status(StatusCode::kInvalidArgument, "the preload library is of another version");
  else if (targets_.size() >= kMaxTargets)
    status = Status(StatusCode::kUnavailable, "too many processes in one session");
  else
    status = Adopt(peer.pid, connection.get());
  if (!status.ok()) {
    const heapprofd::Welcome decline{.magic = kHandshakeMagic,
                                     .version = kWireVersion,
                                     .status = WelcomeStatus::kDecline,
                                     .ring_size = 0,
                                     .seed = 0};
    SendWelcome(connection.get(), decline, nullptr, 0);
  }
}

Status Session::Adopt(pid_t pid, int connection) {
  for (size_t i = 0; i < live_.size(); ++i) {
    if (live_[i].target->pid() == pid) {
      Finish(i, TargetEnd::kExeced);
      break;
    }
  }
  ScopedFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid())
    return Status::FromErrno("cannot watch process " + std::to_string(pid), errno);
  HPD_TRY_ASSIGN(std::unique_ptr<Target> target,
                 Target::Create(pid, config_, &modules_, &clock_));
  const heapprofd::Welcome welcome{.magic = kHandshakeMagic,
                                   .version = kWireVersion,
                                   .status = WelcomeStatus::kProfile,
                                   .ring_size = target->memory().ring_size(),
                                   .seed = RandomSeed()};
  const int fds[2] = {target->memory().engine_fd(), target->memory().client_fd()};
  if (!SendWelcome(connection, welcome, fds, 2))
    return {};  // it went away while waiting
  live_.push_back(
      {.target = target.get(), .pidfd = std::move(pidfd), .attached = nullptr});
  targets_.push_back(std::move(target));
  busy_until_ns_ = clock_.last_ns() + kBusyNs;
  return {};
}

// The process image is gone: reads the rest of its ring and keeps the result only.
void Session::Finish(size_t index, TargetEnd end) {
  Target* target = live_[index].target;
  TakeHooksOut(live_[index]);
  clock_.Update();
  target->DrainRest(/*writers_gone=*/true);
  target->Stop(end);
  target->UpdateDump();
  target->ReleaseRecorder();
  live_.erase(live_.begin() + static_cast<ptrdiff_t>(index));
}

void Session::ReapExited() {
  for (size_t i = live_.size(); i-- > 0;) {
    pollfd exited{.fd = live_[i].pidfd.get(), .events = POLLIN, .revents = 0};
    if (poll(&exited, 1, 0) > 0)
      Finish(i, TargetEnd::kExited);
  }
}

void Session::Stop() {
  if (exec_watcher_ != nullptr) {
    AdoptCaught();
    exec_watcher_ = nullptr;
  }
  ReapExited();
  for (LiveTarget& live : live_) {
    TakeHooksOut(live);
    live.target->Stop(TargetEnd::kRunning);
  }
  // Calls that were in a hook when the session ended finish their records within moments;
  // whatever is still reserved after this is counted as lost.
  clock_.Update();
  for (const LiveTarget& live : live_) {
    live.target->DrainRest(/*writers_gone=*/false);
    live.target->UpdateDump();
    live.target->ReleaseRecorder();
  }
  live_.clear();
}

}  // namespace heapprofd
