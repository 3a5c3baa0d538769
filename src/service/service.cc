#include "service/service.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control.pb.h"
#include "service/attaching.h"

namespace heapprofd {
namespace {

constexpr char kSpoolDirectory[] = "/var/tmp";  // on disk, unlike /run
constexpr size_t kMaxRecordings = 256;
constexpr size_t kMaxRecordingsOfUser = 64;
constexpr int kMessagesPerTurn = 4;    // of one connection
constexpr int kPatienceCheckMs = 500;  // between two looks at who is silent
constexpr int kIdleWaitMs = 20;        // between two looks at rings that are quiet

// A file of such a system is served by a program of whoever has mounted it: writing could
// wait for ever.
bool IsServedByUser(int fd) {
  struct statfs status {};

  return fstatfs(fd, &status) == 0 && status.f_type == FUSE_SUPER_MAGIC;
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

}  // namespace

Result<std::unique_ptr<Service>> Service::Create(
    std::unique_ptr<RuntimeDirectory> directory, ScopedFd listener, ServiceHooks hooks) {
  std::unique_ptr<Service> service(new Service(std::move(directory), std::move(hooks)));
  service->listener_ = std::move(listener);
  if (!service->listener_.valid())
    HPD_TRY(service->Listen());
  // Programs that outlived an earlier service may now be wanted by nobody; those that it
  // profiled notice by themselves that it is gone.
  service->directory_->SetRecordings(0);
  service->directory_->Wake();
  return service;
}

Service::~Service() {
  StopListening();
}

// Whoever comes later need not wait for an answer.
void Service::StopListening() {
  if (owns_socket_)
    unlink(directory_->socket_path().c_str());
  owns_socket_ = false;
  listener_.reset();
  pending_.clear();
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
  if (!pending_.empty())
    wait_ms = wait_ms < 0 ? kPatienceCheckMs : std::min(wait_ms, kPatienceCheckMs);
  if (is_behind_)
    wait_ms = 0;
  is_behind_ = false;
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
  const uint64_t turn_end_ns = MonotonicNs() + FairTurn::kTurnNs;
  ++turns_;  // each begins with another recording: it may be over before the last one
  for (size_t i = 0; i < hosted_.size(); ++i) {
    const std::unique_ptr<Hosted>& hosted = hosted_[(turns_ + i) % hosted_.size()];
    wait_ms = std::min(wait_ms, hosted->recording->Serve(kIdleWaitMs, turn_end_ns));
    if (HasNothingLeft(*hosted->recording))
      hosted->recording->Stop(StopCause::kRequested);
    hooks_.observe(*hosted->recording);
  }
  return wait_ms;
}

// While one recording takes its time.
void Service::ServeMeanwhile() {
  const uint64_t turn_end_ns = MonotonicNs() + FairTurn::kTurnNs;
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions()) {
      if (!session->is_stopped())
        session->Serve(turn_end_ns);
    }
  }
  Accept();
  ServePending();
}

void Service::ServeConnections() {
  for (size_t i = connections_.size(); i-- > 0;) {
    Connection& connection = *connections_[i];
    bool is_open = true;
    for (int turn = 0; is_open; ++turn) {
      if (turn == kMessagesPerTurn) {
        is_behind_ = true;
        break;
      }
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
      if (status.ok())
        return connection.channel.Send(ControlType::kStarted, "").ok();
      const bool is_its_fault = status.code() == StatusCode::kInvalidArgument;
      return connection.channel
          .Send(is_its_fault ? ControlType::kFailed : ControlType::kUnavailable,
                status.message())
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

Status Service::CheckRoom(uid_t user) const {
  const auto same =
      std::count_if(hosted_.begin(), hosted_.end(),
                    [user](const auto& hosted) { return hosted->owner == user; });
  const bool has_room =
      hosted_.size() < kMaxRecordings &&
      (user == geteuid() || static_cast<size_t>(same) < kMaxRecordingsOfUser);
  return has_room
             ? Status()
             : Status(StatusCode::kUnavailable, "cannot record: " + std::to_string(same) +
                                                    " recordings of this user run "
                                                    "already; stop one");
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
  if (connection.user != geteuid() && IsServedByUser(message.fds[0].get()))
    return Status(StatusCode::kInvalidArgument,
                  "cannot record: the trace must not lie in a FUSE file system; name "
                  "another place with -o");
  HPD_TRY(CheckRoom(connection.user));
  HPD_TRY_ASSIGN(RecordingConfig config,
                 ParseTraceConfig(request.trace_config(), ConfigForm::kBinary));
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    if (!config.unique_name.empty() &&
        hosted->recording->config().unique_name == config.unique_name)
      return Status(StatusCode::kInvalidArgument,
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
  hosted->recording->set_between_dumps([this] { ServeMeanwhile(); });
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
  directory_->SetRecordings(hosted_.size());
  directory_->Wake();
  return {};
}

// Programs without a client of ours. What is not possible is told at once.
Status Service::Attach(Hosted& hosted, Connection& connection) {
  std::vector<std::string> notes;
  const AttachPolicy policy{.owner = hosted.owner,
                            .directory = directory_->path(),
                            .wake_page = directory_->path() + kWakeName,
                            .is_taken =
                                [this](pid_t pid) {
                                  return AnySession([pid](const Session& session) {
                                    return session.IsProfiling(pid);
                                  });
                                },
                            .between = [this] { ServeMeanwhile(); }};
  for (const std::unique_ptr<Session>& session : hosted.recording->sessions()) {
    CatchStarting(*session, policy, &notes);  // first: nobody falls in between
    HPD_TRY(AttachToRunning(*session, policy, &notes));
  }
  for (const std::string& note : notes)
    HPD_TRY(connection.channel.Send(ControlType::kNote, note));
  return {};
}

bool Service::AnySession(const std::function<bool(const Session&)>& is_such) const {
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions()) {
      if (is_such(*session))
        return true;
    }
  }
  return false;
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
  StopListening();
  for (const std::unique_ptr<Hosted>& hosted : hosted_)
    hosted->recording->Stop(StopCause::kRequested);
  FinishOver();
  directory_->GiveUpLock();  // the next service need not wait for what is left to do
}

void Service::FinishOver() {
  for (size_t i = hosted_.size(); i-- > 0;) {
    if (hosted_[i]->recording->cause() == StopCause::kNone)
      continue;
    Finish(*hosted_[i]);
    hooks_.forget(*hosted_[i]->recording);
    hosted_.erase(hosted_.begin() + static_cast<ptrdiff_t>(i));
    directory_->SetRecordings(hosted_.size());
  }
}

Service::Connection* Service::FindConnection(size_t serial) {
  for (const std::unique_ptr<Connection>& connection : connections_) {
    if (connection->serial == serial)
      return connection.get();
  }
  return nullptr;
}

// Only these: a wait for any child takes the stops of threads that we trace, too.
void Service::ReapFinishers() {
  std::erase_if(finishers_,
                [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
}

void Service::AwaitFinishers() {
  for (const pid_t pid : finishers_) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  finishers_.clear();
}

// The finisher has the connection to itself: it answers, and whatever becomes of it, its
// end closes the connection.
void Service::Finish(Hosted& hosted) {
  Connection* connection = FindConnection(hosted.connection);
  const pid_t pid = fork();
  if (pid == 0)
    RunFinisher(hosted, connection != nullptr ? connection->channel.fd() : -1);
  if (pid > 0)
    finishers_.push_back(pid);
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
  // Neither the socket nor the lock may live on in here when the service is killed, nor
  // other people's connections when it closes them.
  ControlChannel channel{
      ScopedFd(connection >= 0 ? fcntl(connection, F_DUPFD_CLOEXEC, 0) : -1)};
  listener_.reset();
  owns_socket_ = false;
  directory_->ReleaseLock();
  for (const std::unique_ptr<Hosted>& other : hosted_) {
    for (const std::unique_ptr<Session>& session : other->recording->sessions())
      session->LeaveToParent();
  }
  pending_.clear();
  connections_.clear();
  if (hosted.standard_error.valid())
    dup2(hosted.standard_error.get(), STDERR_FILENO);
  if (geteuid() == 0 && hosted.owner != 0 &&
      (setgroups(0, nullptr) != 0 ||
       setresgid(hosted.group, hosted.group, hosted.group) != 0 ||
       setresuid(hosted.owner, hosted.owner, hosted.owner) != 0))
    _exit(1);
  const int exit_code = hooks_.finish(*hosted.recording, hosted.request);
  if (connection >= 0) {
    const Status ignored = channel.Send(ControlType::kDone, std::to_string(exit_code));
    static_cast<void>(ignored);
  }
  _exit(0);
}

}  // namespace heapprofd
