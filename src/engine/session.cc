#include "engine/session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/obstacle.h"
#include "engine/process_info.h"
#include "engine/silent_processes.h"
#include "engine/target_rules.h"
#include "wire/control.h"

namespace heapprofd {
namespace {

constexpr size_t kRecordsPerTurn =
    20'000;  // of one target, before the others get their turn
// Each wait ends in a timer interrupt, which the kernel likes to take on the target's
// processor, and each look at a ring takes cache lines away from its writers: so the
// waits are as long as the rings' space allows. While code is new they are short, for
// until its rules are published each sample in it copies its stack.
constexpr int kMinWaitMs = 1;
constexpr int kMaxWaitMs = 10;
constexpr double kLowFill = 1.0 / 64;  // of the ring, when a wait ends
constexpr double kHighFill = 1.0 / 8;

// Root's programs may become those of other users and must still reach it.
std::string RuntimeDirectory() {
  const char* runtime = geteuid() != 0 ? getenv("XDG_RUNTIME_DIR") : nullptr;
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

std::unique_ptr<Session> Session::CreateWithoutSocket(const SessionConfig& config) {
  std::unique_ptr<Session> session(new Session(config));
  session->clock_.Update();
  return session;
}

Session::~Session() {
  if (!socket_path_.empty())
    unlink(socket_path_.c_str());
  for (const std::string& directory : {directory_, parent_directory_}) {
    if (!directory.empty())
      rmdir(directory.c_str());
  }
}

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
  const int wait_ms = std::min(DrainAll(), max_wait_ms);
  std::vector<pollfd> fds;
  fds.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  fds.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  fds.push_back({.fd = caught_fd(), .events = POLLIN, .revents = 0});
  for (const LiveTarget& live : live_)
    fds.push_back({.fd = live.pidfd.get(), .events = POLLIN, .revents = 0});
  if (poll(fds.data(), fds.size(), wait_ms) <= 0)
    return;
  if (fds[0].revents != 0)
    AcceptClients();
  AdoptCaught();
  ReapExited();
}

int Session::Serve() {
  AdoptCaught();
  const int wait_ms = DrainAll();
  ReapExited();
  FollowAttached();
  return wait_ms;
}

size_t Session::CountSilent() const {
  if (socket_path_.empty() || !config_.follow_children)
    return 0;
  return CountSilentProcesses(socket_path_,
                              [this](pid_t pid) { return IsProfiling(pid); });
}

bool Session::IsProfiling(pid_t pid) const {
  return std::any_of(live_.begin(), live_.end(),
                     [pid](const LiveTarget& live) { return live.target->pid() == pid; });
}

void Session::NoteRejected(const ProcessDescription& process) {
  if (rejected_.size() >= kMaxTargets)
    return;
  for (const std::unique_ptr<TargetProfile>& known : rejected_) {
    if (known->process.pid == process.pid)
      return;
  }
  auto profile = std::make_unique<TargetProfile>();
  profile->process = process;
  profile->process.start_ns = MonotonicNs();
  profile->rejected_concurrent = true;
  profile->reason = "another session profiles this process";
  rejected_.push_back(std::move(profile));
}

int Session::DrainAll() {
  clock_.Update();
  double fill = 0;
  bool is_learning = false;
  bool is_pending = false;
  bool did_read = false;
  for (const LiveTarget& live : live_) {
    Target& target = *live.target;
    fill = std::max(fill, target.ring_fill());
    const uint64_t copies = target.quality().copied_samples;
    const size_t records = target.Drain(kRecordsPerTurn, /*writers_gone=*/false);
    target.Tick();
    is_learning |= target.quality().copied_samples != copies;
    is_pending |= target.is_behind();
    did_read |= records > 0;
  }
  if (is_pending)
    return 0;
  if (is_learning || fill > kHighFill)
    wait_ms_ = kMinWaitMs;
  else if (fill < kLowFill)
    wait_ms_ = std::min(wait_ms_ + 1, kMaxWaitMs);
  if (did_read)
    busy_until_ns_ = clock_.last_ns() + kBusyNs;
  return clock_.last_ns() < busy_until_ns_ ? wait_ms_ : INT_MAX;
}

void Session::AcceptClients() {
  while (true) {
    ScopedFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid())
      return;
    Hear(std::move(connection));
  }
}

// A client says one thing, at once.
void Session::Hear(ScopedFd connection) {
  const timeval patience{.tv_sec = 0, .tv_usec = 200'000};
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
      peer.pid <= 0 || (geteuid() != 0 && peer.uid != geteuid()))
    return;
  uint64_t magic = 0;
  const bool may_control = peer.uid == 0 || peer.uid == geteuid();
  if (control_handler_ && may_control &&
      recv(connection.get(), &magic, sizeof(magic), MSG_PEEK) ==
          static_cast<ssize_t>(sizeof(magic)) &&
      magic == kControlMagic)
    return control_handler_(std::move(connection));
  std::array<std::byte, sizeof(ExecNotice)> message{};
  const ssize_t size = recv(connection.get(), message.data(), message.size(), 0);
  Hello hello{};
  ExecNotice notice{};
  if (size == static_cast<ssize_t>(sizeof(hello)))
    memcpy(&hello, message.data(), sizeof(hello));
  else if (size == static_cast<ssize_t>(sizeof(notice)))
    memcpy(&notice, message.data(), sizeof(notice));
  if (hello.magic == kHandshakeMagic)
    Welcome(hello, peer.pid, connection.get());
  else if (notice.magic == kExecNoticeMagic && notice.version == kWireVersion)
    HandleExecNotice(notice, peer.pid);
}

void Session::Welcome(const Hello& hello, pid_t pid, int connection) {
  Status status;
  if (hello.version != kWireVersion)
    status =
        Status(StatusCode::kInvalidArgument, "the preload library is of another version");
  else if (!Wants(pid))
    status = Status(StatusCode::kNotFound, "not one of the processes asked for");
  else
    status = Adopt(pid, connection, /*from_startup=*/true);
  if (!status.ok()) {
    const std::string name = DescribeProcess(pid).cmdline[0];
    programs_.Attempt(pid, MonotonicNs(), name + " (" + status.message() + ")",
                      UnrecordedReason::kDeclined);
    const heapprofd::Welcome decline{.magic = kHandshakeMagic,
                                     .version = kWireVersion,
                                     .status = WelcomeStatus::kDecline,
                                     .ring_size = 0,
                                     .seed = 0};
    SendWelcome(connection, decline, nullptr, 0);
  }
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
  const std::string program(notice.program,
                            strnlen(notice.program, sizeof(notice.program)));
  std::string directory = "/proc/" + std::to_string(sender) + "/cwd";
  if (access(directory.c_str(), F_OK) != 0)
    directory.clear();  // already over; most began where we did
  UnrecordedReason reason = ReasonOf(FindObstacle(program, directory).kind);
  if (reason == UnrecordedReason::kNotLoaded && notice.keeps_session == 0)
    reason = UnrecordedReason::kCleanedEnvironment;
  programs_.Attempt(notice.pid, notice.time_ns, program, reason);
}

void Session::ExpectProgram(pid_t pid, const std::string& program) {
  programs_.Attempt(pid, MonotonicNs(), program,
                    ReasonOf(FindObstacle(program, "").kind));
}

void Session::EndTarget(pid_t pid) {
  for (size_t i = 0; i < live_.size(); ++i) {
    if (live_[i].target->pid() == pid) {
      Finish(i, TargetEnd::kExeced);
      return;
    }
  }
}

Status Session::Adopt(pid_t pid, int connection, bool from_startup) {
  if (targets_.size() >= kMaxTargets)
    return Status(StatusCode::kUnavailable, "too many processes in one session");
  EndTarget(pid);
  programs_.Recorded(pid, MonotonicNs());
  ScopedFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid())
    return Status::FromErrno("cannot watch process " + std::to_string(pid), errno);
  HPD_TRY_ASSIGN(std::unique_ptr<Target> target,
                 Target::Create(pid, config_, &modules_, &clock_));
  target->profile().from_startup = from_startup;
  target->set_events(events_);
  const heapprofd::Welcome welcome{.magic = kHandshakeMagic,
                                   .version = kWireVersion,
                                   .status = WelcomeStatus::kProfile,
                                   .ring_size = target->memory().ring_size(),
                                   .seed = RandomSeed()};
  const int fds[2] = {target->memory().engine_fd(), target->memory().client_fd()};
  if (!SendWelcome(connection, welcome, fds, 2))
    return {};  // it went away while waiting
  live_.push_back({.target = target.get(),
                   .pidfd = std::move(pidfd),
                   .attached = nullptr,
                   .forks_seen = 0});
  targets_.push_back(std::move(target));
  busy_until_ns_ = clock_.last_ns() + kBusyNs;
  return {};
}

// The process image is gone.
void Session::Finish(size_t index, TargetEnd end) {
  Target* target = live_[index].target;
  TakeHooksOut(live_[index]);
  clock_.Update();
  target->DrainRest(/*writers_gone=*/true);
  target->Stop(end);
  Release(target);
  live_.erase(live_.begin() + static_cast<ptrdiff_t>(index));
}

// Its ring has been read: keeps the result only.
void Session::Release(Target* target) {
  target->UpdateDump();
  const std::string& name = target->profile().process.cmdline[0];
  programs_.Count(name, UnrecordedReason::kConfined, target->confined_children());
  programs_.Count(name, UnrecordedReason::kNoSpace, target->has_client() ? 0 : 1);
  target->ReleaseRecorder();
}

void Session::ReapExited() {
  std::vector<pollfd> fds;
  for (const LiveTarget& live : live_)
    fds.push_back({.fd = live.pidfd.get(), .events = POLLIN, .revents = 0});
  if (poll(fds.data(), fds.size(), 0) <= 0)
    return;
  for (size_t i = fds.size(); i-- > 0;) {
    if (fds[i].revents != 0)
      Finish(i, TargetEnd::kExited);
  }
}

void Session::StopAtGuardrail() {
  for (const std::unique_ptr<Target>& target : targets_)
    target->profile().hit_guardrail = true;
  Stop();
}

void Session::Stop() {
  is_stopped_ = true;
  if (listener_.valid()) {
    AcceptClients();  // what was said before the end counts
    // Whoever asks now must not wait for an answer.
    listener_.reset();
    unlink(socket_path_.c_str());
  }
  AdoptCaught();
  exec_watcher_ = nullptr;
  execed_.clear();
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
    Release(live.target);
  }
  live_.clear();
}

}  // namespace heapprofd
