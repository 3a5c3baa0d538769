// The part of a session that listens: programs that have our library report at its
// socket.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/files/guarded_read.h"
#include "base/files/passed_fds.h"
#include "base/files/proc_files.h"
#include "base/files/temporary_directory.h"
#include "base/random_seed.h"
#include "engine/bare_welcome.h"
#include "engine/obstacle.h"
#include "engine/process_info.h"
#include "engine/running_processes.h"
#include "engine/session.h"
#include "engine/target_rules.h"
#include "wire/control.h"

namespace heapprofd {
namespace {

// Root's programs may become those of other users and must still reach it. The longest
// path of a socket is 107 bytes.
std::string RuntimeDirectory() {
  constexpr size_t kMaxLength = 60;
  const char* runtime = geteuid() != 0 ? getenv("XDG_RUNTIME_DIR") : nullptr;
  if (runtime != nullptr && access(runtime, W_OK) == 0 && strlen(runtime) < kMaxLength)
    return runtime;
  return TemporaryDirectory([](const std::string& path) {
    return path.size() < kMaxLength && (geteuid() != 0 || IsOpenToAll(path));
  });
}

bool SendWelcome(int connection,
                 const heapprofd::Welcome& welcome,
                 const std::vector<int>& fds) {
  const std::string_view bytes(reinterpret_cast<const char*>(&welcome), sizeof(welcome));
  return SendWithFds(connection, bytes, fds) == bytes.size();
}

ScopedFd OpenProcess(pid_t pid) {
  return ScopedFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// Readable: it has ended.
bool IsAlive(int process) {
  pollfd ended{.fd = process, .events = POLLIN, .revents = 0};
  return process >= 0 && poll(&ended, 1, 0) == 0;
}

// The other end is closed: its process is gone, or has waited long enough.
bool HasLeft(int connection) {
  char byte = 0;
  const ssize_t got = recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

std::string NameOf(pid_t pid) {
  return DescribeProcess(pid).cmdline[0];
}

UnrecordedReason ReasonOf(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kNone:
      break;
    case Obstacle::k32Bit:
      return UnrecordedReason::k32Bit;
    case Obstacle::kStatic:
      return UnrecordedReason::kStatic;
    case Obstacle::kPrivileged:
      return UnrecordedReason::kPrivileged;
  }
  return UnrecordedReason::kNotLoaded;
}

}  // namespace

// A target may change its user id and then fork a child that reports: as root, let it
// through. Only those who know the name can, which is in the targets' environments.
Status Session::OpenToOtherUsers() {
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

Status Session::Listen() {
  std::string pattern = RuntimeDirectory() + "/heap_profile-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr)
    return Status::FromErrno(
        "cannot create a directory for the session's socket in " + pattern, errno);
  directory_ = pattern;
  if (geteuid() == 0)
    HPD_TRY(OpenToOtherUsers());
  socket_path_ = directory_ + "/socket";
  listener_ = ScopedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const ScopedFd directory(
      open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!listener_.valid() || !directory.valid())
    return Status::FromErrno("cannot create the session's socket", errno);
  // By a path that /proc/net/unix may show to everybody.
  const std::string path = "/proc/self/fd/" + std::to_string(directory.get()) + "/socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  RefuseFds(listener_.get());
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
          0 ||
      listen(listener_.get(), SOMAXCONN) != 0)
    return Status::FromErrno("cannot listen on " + socket_path_, errno);
  chmod(socket_path_.c_str(), geteuid() == 0 ? 0666 : 0600);
  return {};
}

// True: there are more.
bool Session::ServeClients() {
  const bool more_wait = listener_.valid() && clients_.Accept(listener_.get());
  const bool more_speak = clients_.Serve(
      [this](PendingClients::Client& client, uint64_t magic) { Hear(client, magic); });
  return more_wait || more_speak;
}

// A client says one thing, in one piece.
void Session::Hear(PendingClients::Client& client, uint64_t magic) {
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
    Welcome(hello, client);
  } else if (magic == kExecNoticeMagic && size == static_cast<ssize_t>(sizeof(notice))) {
    memcpy(&notice, message.data(), sizeof(notice));
    if (notice.version == kWireVersion)
      HandleExecNotice(notice, client.peer.pid);
  }
}

void Session::Welcome(const Hello& hello, const PendingClients::Client& client) {
  const pid_t pid = client.peer.pid;
  if (hello.version != kWireVersion)
    Decline(pid, "the preload library is of another version");
  else if (!Wants(pid))
    programs_.Recorded(pid, MonotonicNs());  // nobody misses it
  else if (Adopt({.pid = pid,
                  .user = client.peer.uid,
                  .group = client.peer.gid,
                  .connection = client.fd.get(),
                  .process = OpenProcess(pid),
                  .from_startup = true})
               .ok())
    return;
  SendBareWelcome(client.fd.get(), WelcomeStatus::kDecline);
}

void Session::Decline(pid_t pid, const std::string& why) {
  programs_.Missed(pid, MonotonicNs(), NameOf(pid), why, UnrecordedReason::kDeclined);
}

// A session with a program of its own records all of its processes unless some are named.
bool Session::Wants(pid_t pid) const {
  const TargetRules& rules = config_.targets;
  return (rules.names.empty() && rules.pids.empty()) ||
         IsNamedBy(rules, DescribeProcess(pid));
}

void Session::HandleExecNotice(const ExecNotice& notice, pid_t sender) {
  if (notice.outcome == ExecOutcome::kFailed) {
    programs_.Failed(notice.pid);
    return;
  }
  if (!config_.follow_children && notice.pid != program_)
    return;  // nobody misses it
  const std::string program(notice.program,
                            strnlen(notice.program, sizeof(notice.program)));
  std::string directory = ProcPath(sender, "cwd");
  if (ReadProcessLink(sender, "cwd").text.empty())
    directory.clear();  // already over; most began where we did
  UnrecordedReason reason = ReasonOf(FindObstacle(program, directory, sender).kind);
  if (reason == UnrecordedReason::kNotLoaded && notice.keeps_session == 0)
    reason = UnrecordedReason::kCleanedEnvironment;
  programs_.Attempt(notice.pid, notice.time_ns, program, reason);
}

void Session::ExpectProgram(pid_t pid, const std::string& program) {
  program_ = pid;
  programs_.Attempt(pid, MonotonicNs(), program,
                    ReasonOf(FindObstacle(program, "").kind));
}

Status Session::CheckRoom(pid_t pid) const {
  if (targets_.size() >= kMaxTargets)
    return Status(StatusCode::kUnavailable,
                  "too many processes in one session; record fewer at once");
  if (!UserBudget::OfEngine().HasRoom(RealUser(pid).value_or(kNobody)))
    return Status(StatusCode::kUnavailable,
                  "the profiles of its user's processes take all the memory that one "
                  "user may have; end a recording of them");
  return {};
}

Status Session::Adopt(Newcomer newcomer) {
  const uint64_t asked_ns = MonotonicNs();
  const pid_t pid = newcomer.pid;
  const int connection = newcomer.connection;
  EndTarget(pid);
  Status status = pid == attaching_ ? Status(StatusCode::kUnavailable,
                                             "it is being attached to at this moment")
                                    : TakeIn(std::move(newcomer));
  if (status.ok())
    programs_.Recorded(pid, asked_ns);
  else if (HasLeft(connection))  // which can make anything fail
    programs_.Missed(pid, asked_ns, NameOf(pid), "", UnrecordedReason::kLate);
  else
    Decline(pid, status.message());
  return status;
}

Status Session::TakeIn(Newcomer newcomer) {
  const pid_t pid = newcomer.pid;
  HPD_TRY(CheckRoom(pid));
  if (HasLeft(newcomer.connection))
    return Status(StatusCode::kUnavailable, "it does not wait for an answer any more");
  const Target::Origin origin{
      .pid = pid, .thread = pid, .from_startup = newcomer.from_startup};
  HPD_TRY_ASSIGN(std::unique_ptr<Target> target,
                 Target::Create(origin, config_, &modules_, &clock_));
  SharedMemory& memory = target->recorder().memory();
  // Looked at now that its mappings are open: whatever it has become before is seen, and
  // what it becomes later has other mappings.
  if (!IsAlive(newcomer.process.get()) ||
      !HasRightsOf(pid, newcomer.user, newcomer.group))
    return Status(StatusCode::kUnavailable,
                  "process " + std::to_string(pid) +
                      " has ended, or become a program with other rights");
  const heapprofd::Welcome welcome{.magic = kHandshakeMagic,
                                   .version = kWireVersion,
                                   .status = WelcomeStatus::kProfile,
                                   .ring_size = memory.ring_size(),
                                   .seed = RandomSeed()};
  const std::vector<int> fds = {memory.engine_fd(), memory.client_fd()};
  if (!SendWelcome(newcomer.connection, welcome, fds))
    return Status::FromErrno("cannot answer process " + std::to_string(pid), errno);
  AddTarget(std::move(target), std::move(newcomer.process));
  return {};
}

Session::LiveTarget& Session::AddTarget(std::unique_ptr<Target> target, ScopedFd pidfd) {
  target->recorder().set_events(events_);
  target->requests().set_budget(&requested_dumps_, target->user());
  busy_until_ns_ = clock_.last_ns() + kBusyNs;
  live_.push_back({.target = target.get(), .pidfd = std::move(pidfd)});
  targets_.push_back(std::move(target));
  return live_.back();
}

}  // namespace heapprofd
