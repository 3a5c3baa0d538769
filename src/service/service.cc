#include "service/service.h"

#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control.pb.h"
#include "engine/process_info.h"
#include "engine/target_rules.h"
#include "service/attaching.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPatienceNs = 4'000'000'000;  // until a client has said who it is
constexpr char kSpoolDirectory[] = "/var/tmp";   // on disk, unlike /run
constexpr size_t kClientsPerTurn = 16;
constexpr size_t kMaxPending = 4096;
constexpr size_t kMaxConnections = 1024;
constexpr size_t kMaxRecordings = 256;
constexpr int kIdleWaitMs = 20;  // between two looks at rings that are quiet

bool MayProfile(uid_t owner, uid_t user) {
  return owner == 0 || owner == user;
}

bool PeerOf(int fd, ucred* peer) {
  socklen_t length = sizeof(*peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &length) == 0;
}

// All processes that were asked for by number have been recorded and are gone.
bool HasNothingLeft(const TraceRecording& recording) {
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    const TargetRules& rules = session->config().targets;
    if (rules.all || !rules.names.empty() || session->targets().empty() ||
        session->live_targets() > 0 ||
        std::any_of(rules.pids.begin(), rules.pids.end(),
                    [](pid_t pid) { return kill(pid, 0) == 0 || errno != ESRCH; }))
      return false;
  }
  return true;
}

void SendDecline(int fd) {
  const Welcome decline{.magic = kHandshakeMagic,
                        .version = kWireVersion,
                        .status = WelcomeStatus::kDecline,
                        .ring_size = 0,
                        .seed = 0};
  send(fd, &decline, sizeof(decline), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Result<std::unique_ptr<Service>> Service::Create(
    std::unique_ptr<RuntimeDirectory> directory, ScopedFd listener, ServiceHooks hooks) {
  std::unique_ptr<Service> service(new Service(std::move(directory), std::move(hooks)));
  service->listener_ = std::move(listener);
  if (!service->listener_.valid())
    HPD_TRY(service->Listen());
  // Programs that outlived an earlier service may now be wanted by nobody; those that it
  // profiled notice by themselves that it is gone.
  service->directory_->Wake();
  return service;
}

Service::~Service() {
  if (owns_socket_)
    unlink(directory_->socket_path().c_str());
}

Status Service::Listen() {
  const std::string path = directory_->socket_path();
  listener_ = ScopedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!listener_.valid() || path.size() >= sizeof(address.sun_path))
    return Status(StatusCode::kInvalidArgument,
                  "cannot listen on " + path + ": the path is too long");
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  unlink(path.c_str());  // left by a service that was killed: the lock is ours
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
          0 ||
      chmod(path.c_str(), geteuid() == 0 ? 0666 : 0600) != 0 ||
      listen(listener_.get(), SOMAXCONN) != 0)
    return Status::FromErrno("cannot listen on " + path, errno);
  owns_socket_ = true;
  return {};
}

bool Service::is_idle() const {
  return hosted_.empty() && connections_.empty() && pending_.empty();
}

void Service::Poll(int max_wait_ms, int wake_fd) {
  int wait_ms = ServeRecordings();
  FinishOver();
  if (!pending_.empty())  // some may be left over from the last turn
    wait_ms = wait_ms < 0 ? 1 : std::min(wait_ms, 1);
  if (wait_ms < 0 || (max_wait_ms >= 0 && max_wait_ms < wait_ms))
    wait_ms = max_wait_ms;
  std::vector<pollfd> fds;
  fds.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  fds.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  for (const Pending& pending : pending_)
    fds.push_back({.fd = pending.fd.get(), .events = POLLIN, .revents = 0});
  for (const std::unique_ptr<Connection>& connection : connections_)
    fds.push_back({.fd = connection->channel.fd(), .events = POLLIN, .revents = 0});
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions())
      fds.push_back({.fd = session->caught_fd(), .events = POLLIN, .revents = 0});
  }
  if (poll(fds.data(), fds.size(), wait_ms) > 0 && fds[0].revents != 0)
    Accept();
  ServePending();
  ServeConnections();
}

// Milliseconds until rings must be looked at again; -1: there are none.
int Service::ServeRecordings() {
  int wait_ms = hosted_.empty() ? -1 : kIdleWaitMs;
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    wait_ms = std::min(wait_ms, hosted->recording->Serve(kIdleWaitMs));
    if (HasNothingLeft(*hosted->recording))
      hosted->recording->Stop(StopCause::kRequested);
    hooks_.observe(*hosted->recording);
  }
  return wait_ms;
}

void Service::ServeSessions() {
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions()) {
      if (!session->is_stopped())
        session->Serve();
    }
  }
}

void Service::Accept() {
  while (true) {
    ScopedFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid())
      return;
    if (pending_.size() >= kMaxPending)
      pending_.erase(pending_.begin());
    pending_.push_back({.fd = std::move(fd), .deadline_ns = MonotonicNs() + kPatienceNs});
  }
}

// In order of arrival, and only some at a time: those that are profiled already must not
// wait for a crowd that comes.
void Service::ServePending() {
  const uint64_t now = MonotonicNs();
  size_t served = 0;
  std::vector<Pending> rest;
  for (Pending& pending : pending_) {
    const bool is_done = served < kClientsPerTurn && Identify(pending);
    served += is_done ? 1u : 0u;
    if (!is_done && pending.deadline_ns >= now)
      rest.push_back(std::move(pending));
  }
  pending_ = std::move(rest);
}

bool Service::Identify(Pending& pending) {
  uint64_t magic = 0;
  const ssize_t got =
      recv(pending.fd.get(), &magic, sizeof(magic), MSG_PEEK | MSG_DONTWAIT);
  if (got < 0)
    return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
  if (got != static_cast<ssize_t>(sizeof(magic)))
    return got == 0;
  ucred peer{};
  if (!PeerOf(pending.fd.get(), &peer) || peer.pid <= 0 ||
      (geteuid() != 0 && peer.uid != geteuid()))
    return true;
  if (magic == kHandshakeMagic) {
    ServeClient(pending.fd.get(), peer.pid, peer.uid);
  } else if (magic == kControlMagic && connections_.size() < kMaxConnections) {
    connections_.push_back(std::make_unique<Connection>(
        Connection{.serial = next_serial_++,
                   .channel = ControlChannel(std::move(pending.fd)),
                   .user = peer.uid,
                   .group = peer.gid}));
  }
  return true;
}

// The socket does not block, so the few bytes of a Welcome go out at once or never.
void Service::ServeClient(int fd, pid_t pid, uid_t user) {
  Hello hello{};
  if (recv(fd, &hello, sizeof(hello), MSG_DONTWAIT) !=
          static_cast<ssize_t>(sizeof(hello)) ||
      hello.version != kWireVersion)
    return SendDecline(fd);
  EndTargetsOf(pid);
  Session* session = SessionFor(DescribeProcess(pid), user, hello.origin);
  if (session == nullptr ||
      !session->Adopt(pid, fd, hello.origin != ClientOrigin::kDormant).ok())
    return SendDecline(fd);
}

// A process that says Hello again has become another program.
void Service::EndTargetsOf(pid_t pid) {
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions())
      session->EndTarget(pid);
  }
}

namespace {

bool Wants(const Session& session, const ProcessDescription& process, ClientOrigin how) {
  const TargetRules& rules = session.config().targets;
  if (session.is_stopped() || !IsNamedBy(rules, process))
    return false;
  if (how == ClientOrigin::kForkChild && !session.config().follow_children)
    return false;
  if (how != ClientOrigin::kDormant)
    return !rules.no_startup;
  return !rules.no_running && (rules.min_anonymous_kib == 0 ||
                               AnonymousKib(process.pid) >= rules.min_anonymous_kib);
}

}  // namespace

Session* Service::SessionFor(const ProcessDescription& process,
                             uid_t user,
                             ClientOrigin origin) {
  Session* first = nullptr;
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    if (!MayProfile(hosted->owner, user))
      continue;
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions()) {
      if (!Wants(*session, process, origin))
        continue;
      if (first == nullptr)
        first = session.get();
      else
        session->NoteRejected(process);
    }
  }
  return first;
}

void Service::ServeConnections() {
  for (size_t i = connections_.size(); i-- > 0;) {
    Connection& connection = *connections_[i];
    bool is_open = true;
    while (is_open) {
      Result<std::optional<ControlMessage>> message = connection.channel.Receive();
      if (message.ok() && !message.value())
        break;
      is_open = message.ok() && Handle(connection, std::move(*message.value()));
    }
    if (is_open)
      continue;
    for (const std::unique_ptr<Hosted>& hosted : hosted_) {
      if (hosted->connection == connection.serial)
        hosted->recording->Stop(StopCause::kRequested);
    }
    connections_.erase(connections_.begin() + static_cast<ptrdiff_t>(i));
  }
}

bool Service::Handle(Connection& connection, ControlMessage message) {
  switch (message.type) {
    case ControlType::kMark:
      return connection.channel
          .Send(ControlType::kMarked,
                std::to_string(DumpFor(connection, message.payload)))
          .ok();
    case ControlType::kStart: {
      const Status status = Start(connection, std::move(message));
      return (status.ok()
                  ? connection.channel.Send(ControlType::kStarted, "")
                  : connection.channel.Send(ControlType::kFailed, status.message()))
          .ok();
    }
    case ControlType::kStop:
      for (const std::unique_ptr<Hosted>& hosted : hosted_) {
        if (hosted->connection == connection.serial)
          hosted->recording->Stop(StopCause::kRequested);
      }
      return true;
    default:
      return false;
  }
}

Status Service::Start(Connection& connection, ControlMessage message) {
  protos::StartRequest request;
  if (message.fds.size() != 2 || !request.ParseFromString(message.payload))
    return Status(StatusCode::kInvalidArgument, "cannot understand the request");

  // Writing to anything else could make the service wait.
  struct stat status {};

  if (fstat(message.fds[0].get(), &status) != 0 || !S_ISREG(status.st_mode))
    return Status(StatusCode::kInvalidArgument,
                  "cannot record: the trace must go to a regular file");
  if (hosted_.size() >= kMaxRecordings)
    return Status(StatusCode::kUnavailable,
                  "cannot record: 256 recordings run already; stop one");
  HPD_TRY_ASSIGN(RecordingConfig config,
                 ParseTraceConfig(request.trace_config(), ConfigForm::kBinary));
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    if (!config.unique_name.empty() &&
        hosted->recording->config().unique_name == config.unique_name)
      return Status(StatusCode::kUnavailable,
                    "cannot record: a recording with the unique_session_name " +
                        config.unique_name + " runs already; stop it");
  }
  std::vector<std::unique_ptr<Session>> sessions;
  for (const SessionConfig& session : config.sessions)
    sessions.push_back(Session::CreateWithoutSocket(session));
  auto hosted = std::make_unique<Hosted>();
  hosted->recording = std::make_unique<TraceRecording>(
      std::move(config), std::move(sessions),
      TraceFile(std::move(message.fds[0]), request.trace_path()), kSpoolDirectory);
  hosted->recording->set_between_dumps([this] { ServeSessions(); });
  hosted->owner = connection.user;
  hosted->group = connection.group;
  hosted->request = {
      .directory = request.directory(),
      .trace_path = request.trace_path(),
      .top = request.top(),
      .quiet = request.quiet(),
      .environment = {request.environment().begin(), request.environment().end()}};
  hosted->standard_error = std::move(message.fds[1]);
  hosted->connection = connection.serial;
  for (const std::unique_ptr<Session>& session : hosted->recording->sessions())
    NoteConflicts(*session, hosted->owner);
  HPD_TRY(Attach(*hosted, connection));
  HPD_TRY(hosted->recording->Begin());
  hosted_.push_back(std::move(hosted));
  ++started_;
  directory_->Wake();
  return {};
}

// Programs without a client of ours. What is not possible is told at once.
Status Service::Attach(Hosted& hosted, Connection& connection) {
  std::vector<std::string> notes;
  const AttachPolicy policy{.owner = hosted.owner,
                            .wake_page = directory_->path() + kWakeName,
                            .is_taken = [this](pid_t pid) { return IsTaken(pid); },
                            .between = [this] { ServeSessions(); }};
  for (const std::unique_ptr<Session>& session : hosted.recording->sessions()) {
    CatchStarting(*session, hosted.owner, &notes);  // first: nobody falls in between
    HPD_TRY(AttachToRunning(*session, policy, &notes));
  }
  for (const std::string& note : notes)
    HPD_TRY(connection.channel.Send(ControlType::kNote, note));
  return {};
}

bool Service::IsTaken(pid_t pid) const {
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions()) {
      if (session->IsProfiling(pid))
        return true;
    }
  }
  return false;
}

// Processes that the new session wants and earlier ones have already.
void Service::NoteConflicts(Session& session, uid_t owner) {
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const Target* target : hosted->recording->targets()) {
      const ProcessDescription& process = target->profile().process;
      if (target->is_recording() && MayProfile(owner, process.uid) &&
          Wants(session, process, ClientOrigin::kDormant))
        session.NoteRejected(process);
    }
  }
}

size_t Service::DumpFor(const Connection& connection, const std::string& label) {
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    if (hosted->connection == connection.serial) {
      hosted->recording->Dump(label);
      return 1;
    }
  }
  return Dump(label, connection.user);
}

size_t Service::Dump(const std::string& label, uid_t user) {
  size_t count = 0;
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    if (user != 0 && hosted->owner != user)
      continue;
    hosted->recording->Dump(label);
    ++count;
  }
  return count;
}

void Service::StopAll() {
  for (const std::unique_ptr<Hosted>& hosted : hosted_)
    hosted->recording->Stop(StopCause::kRequested);
  FinishOver();
}

void Service::FinishOver() {
  for (size_t i = hosted_.size(); i-- > 0;) {
    if (hosted_[i]->recording->cause() == StopCause::kNone)
      continue;
    Finish(*hosted_[i]);
    hooks_.forget(*hosted_[i]->recording);
    hosted_.erase(hosted_.begin() + static_cast<ptrdiff_t>(i));
  }
}

Service::Connection* Service::FindConnection(size_t serial) {
  for (const std::unique_ptr<Connection>& connection : connections_) {
    if (connection->serial == serial)
      return connection.get();
  }
  return nullptr;
}

// The finisher has the connection to itself: it answers, and whatever becomes of it, its
// end closes the connection.
void Service::Finish(Hosted& hosted) {
  Connection* connection = FindConnection(hosted.connection);
  const pid_t pid = fork();
  if (pid == 0)
    RunFinisher(hosted, connection != nullptr ? connection->channel.fd() : -1);
  if (connection == nullptr)
    return;
  if (pid < 0) {
    const Status ignored = connection->channel.Send(
        ControlType::kFailed,
        std::string("cannot finish the recording: ") + strerror(errno));
    static_cast<void>(ignored);
  }
  const size_t serial = connection->serial;
  std::erase_if(connections_, [serial](const std::unique_ptr<Connection>& other) {
    return other->serial == serial;
  });
}

void Service::RunFinisher(Hosted& hosted, int connection) {
  // Neither the socket nor the lock may live on in here when the service is killed.
  listener_.reset();
  owns_socket_ = false;
  directory_->ReleaseLock();
  if (hosted.standard_error.valid())
    dup2(hosted.standard_error.get(), STDERR_FILENO);
  if (geteuid() == 0 && hosted.owner != 0 &&
      (setgroups(0, nullptr) != 0 ||
       setresgid(hosted.group, hosted.group, hosted.group) != 0 ||
       setresuid(hosted.owner, hosted.owner, hosted.owner) != 0))
    _exit(1);
  const int exit_code = hooks_.finish(*hosted.recording, hosted.request);
  if (connection >= 0) {
    ControlChannel channel{ScopedFd(connection)};
    const Status ignored = channel.Send(ControlType::kDone, std::to_string(exit_code));
    static_cast<void>(ignored);
  }
  _exit(0);
}

}  // namespace heapprofd
