#include "service/service.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/child_process.h"
#include "base/files/passed_fds.h"
#include "control.pb.h"
#include "service/attaching.h"
#include "service/finisher_environment.h"
#include "service/patient_output.h"
#include "wire/service_place.h"

namespace heapprofd {
namespace {

// That are being finished at a time; others wait their turn.
constexpr size_t kMaxFinishers = 8;
// That run or are being finished.
constexpr size_t kMaxRecordings = 64;
constexpr size_t kMaxRecordingsOfRoot = 256;
constexpr int kMessagesOfConnection = 4;  // in one turn
constexpr int kLookAgainMs = 500;         // between two looks at who takes too long
constexpr int kIdleWaitMs = 20;           // between two looks at rings that are quiet

// All processes that were asked for by number have been recorded and are gone.
bool HasNothingLeft(const TraceRecording& recording) {
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    const TargetRules& rules = session->config().targets;
    if (rules.all || !rules.names.empty() || session->targets().empty() ||
        session->live().size() > 0 ||
        std::any_of(rules.pids.begin(), rules.pids.end(),
                    [](pid_t pid) { return kill(pid, 0) == 0 || errno != ESRCH; }))
      return false;
  }
  return true;
}

std::vector<std::string> FinisherEnvironment(const protos::StartRequest& request) {
  std::vector<std::string> environment;
  std::copy_if(request.environment().begin(), request.environment().end(),
               std::back_inserter(environment), [](std::string_view entry) {
                 return IsFinisherVariable(entry.substr(0, entry.find('=')));
               });
  return environment;
}

std::string SearchPath(const std::vector<std::string>& environment) {
  const std::string key = "PATH=";
  for (const std::string& entry : environment) {
    if (entry.starts_with(key))
      return entry.substr(key.size());
  }
  return "";
}

}  // namespace

Service::Service(std::unique_ptr<Door> door, std::string place, ServiceHooks hooks)
    : door_(std::move(door)), place_(std::move(place)), hooks_(std::move(hooks)) {}

Service::~Service() = default;

bool Service::is_idle() const {
  return hosted_.empty() && connections_.empty() && finishers_.count() == 0 &&
         door_->is_empty();
}

void Service::Poll(int max_wait_ms, int wake_fd) {
  int wait_ms = ServeRecordings();
  FinishOver();
  const auto wait_at_most = [&wait_ms](int limit_ms) {
    if (limit_ms >= 0)
      wait_ms = wait_ms < 0 ? limit_ms : std::min(wait_ms, limit_ms);
  };
  const bool has_undecided =
      std::any_of(connections_.begin(), connections_.end(),
                  [this](const auto& connection) { return !HasRecording(*connection); });
  wait_at_most(finishers_.count() > 0 || has_undecided ? kLookAgainMs : -1);
  wait_at_most(door_->MillisecondsToNext());
  wait_at_most(is_behind_ ? 0 : -1);
  wait_at_most(max_wait_ms);
  is_behind_ = false;
  std::vector<pollfd> fds;
  door_->AddTo(&fds);
  fds.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  for (const std::unique_ptr<Connection>& connection : connections_)
    fds.push_back({.fd = connection->channel.fd(), .events = POLLIN, .revents = 0});
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording->sessions())
      fds.push_back({.fd = session->starts().fd(), .events = POLLIN, .revents = 0});
  }
  poll(fds.data(), fds.size(), wait_ms);
  door_->Serve(*this);
  for (const std::string& label : std::exchange(owed_dumps_, {}))
    Dump(label);
  ServeConnections();
  TellStarted();
  finishers_.Reap();
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
    TellDumps(*hosted);
    TellStatus(*hosted, hooks_.observe(*hosted->recording));
  }
  return wait_ms;
}

// One that does not read gets no more.
void Service::TellStatus(const Hosted& hosted, const std::string& text) {
  Connection* const connection = text.empty() || !hosted.request.wants_status
                                     ? nullptr
                                     : FindConnection(hosted.connection);
  if (connection == nullptr || connection->awaits_start)
    return;
  int unread = 0;  // bytes; what matters must find room, too
  if (ioctl(connection->channel.fd(), SIOCOUTQ, &unread) != 0 || unread > 0)
    return;
  const Status ignored = connection->channel.Send(ControlType::kStatus, text);
  static_cast<void>(ignored);  // its end shows on the channel
}

// One that does not read is told later how many there were.
void Service::TellDumps(Hosted& hosted) {
  const uint64_t dumps = hosted.recording->dump_rounds();
  if (!hosted.request.wants_dumps || dumps == hosted.told_dumps)
    return;
  Connection* const connection = FindConnection(hosted.connection);
  if (connection != nullptr && !connection->awaits_start &&
      connection->channel.Send(ControlType::kDumped, std::to_string(dumps)).ok())
    hosted.told_dumps = dumps;
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
  door_->Serve(*this);
}

void Service::ServeConnections() {
  for (size_t i = connections_.size(); i-- > 0;) {
    Connection& connection = *connections_[i];
    bool is_open = true;
    for (int turn = 0; is_open; ++turn) {
      if (turn == kMessagesOfConnection) {
        is_behind_ = true;
        break;
      }
      Result<std::optional<ControlMessage>> message = connection.channel.Receive();
      if (message.ok() && !message.value())
        break;
      is_open = message.ok() && Handle(connection, std::move(*message.value()));
      connection.deadline_ns = MonotonicNs() + command_patience_ns_;
    }
    is_open =
        is_open && (MonotonicNs() < connection.deadline_ns || HasRecording(connection));
    if (is_open)
      continue;
    for (const std::unique_ptr<Hosted>& hosted : hosted_) {
      if (hosted->connection == connection.serial)
        hosted->recording->Stop(StopCause::kRequested);
    }
    connections_.erase(connections_.begin() + static_cast<ptrdiff_t>(i));
  }
}

// Not before programs that are started then are recorded.
void Service::TellStarted() {
  if (!door_->are_recordings_known())
    return;
  for (const std::unique_ptr<Connection>& connection : connections_)
    TellStarted(*connection);
}

void Service::TellStarted(Connection& connection) {
  if (!std::exchange(connection.awaits_start, false))
    return;
  const Status ignored = connection.channel.Send(ControlType::kStarted, "");
  static_cast<void>(ignored);  // its end shows on the channel
}

bool Service::Handle(Connection& connection, ControlMessage message) {
  switch (message.type) {
    case ControlType::kPrepare:  // it is our user's: what he sends can only hold up him
      AcceptFds(connection.channel.fd());
      return connection.channel.Send(ControlType::kReady, "").ok();
    case ControlType::kMark:
      return connection.channel
          .Send(ControlType::kMarked,
                std::to_string(DumpFor(connection, message.payload)))
          .ok();
    case ControlType::kStart: {
      const Status status = Start(connection, std::move(message));
      if (status.ok()) {
        connection.awaits_start = true;
        return true;
      }
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

bool Service::HasRecording(const Connection& connection) const {
  return std::any_of(hosted_.begin(), hosted_.end(), [&connection](const auto& hosted) {
    return hosted->connection == connection.serial;
  });
}

Status Service::CheckRoom() const {
  const size_t limit = geteuid() == 0 ? kMaxRecordingsOfRoot : kMaxRecordings;
  if (hosted_.size() + finishers_.count() < limit)
    return {};
  return Status(StatusCode::kUnavailable,
                "cannot record: " + std::to_string(hosted_.size()) +
                    " recordings of this user run already, and " +
                    std::to_string(finishers_.count()) + " are being finished; stop one");
}

Status Service::CheckUnique(const RecordingConfig& config) const {
  for (const std::unique_ptr<Hosted>& hosted : hosted_) {
    if (!config.unique_name.empty() &&
        hosted->recording->config().unique_name == config.unique_name)
      return Status(StatusCode::kInvalidArgument,
                    "cannot record: a recording with the unique_session_name " +
                        config.unique_name + " runs already; stop it");
  }
  return {};
}

Status Service::Start(Connection& connection, ControlMessage message) {
  protos::StartRequest request;
  if (!request.ParseFromString(message.payload) ||
      message.fds.size() != (request.has_directory() ? 3u : 2u))
    return Status(StatusCode::kInvalidArgument,
                  "cannot record: the request has no descriptors or is not one of this "
                  "service's version; use the heap_profile that was installed with it");

  // Writing to anything else could make the service wait.
  struct stat status {};

  if (fstat(message.fds[0].get(), &status) != 0 || !S_ISREG(status.st_mode))
    return Status(StatusCode::kInvalidArgument,
                  "cannot record: the trace must go to a regular file");
  if (request.has_directory() &&
      (fstat(message.fds[2].get(), &status) != 0 || !S_ISDIR(status.st_mode)))
    return Status(StatusCode::kInvalidArgument,
                  "cannot record: what comes for the results is no directory");
  HPD_TRY(CheckRoom());
  HPD_TRY_ASSIGN(RecordingConfig config,
                 ParseTraceConfig(request.trace_config(), ConfigForm::kBinary));
  HPD_TRY(CheckUnique(config));
  std::vector<std::unique_ptr<Session>> sessions;
  for (const SessionConfig& session : config.sessions)
    sessions.push_back(Session::CreateWithoutSocket(session));
  auto hosted = std::make_unique<Hosted>();
  hosted->recording = std::make_unique<TraceRecording>(
      std::move(config), std::move(sessions),
      TraceFile(std::move(message.fds[0]), request.trace_path()));
  hosted->recording->set_between_dumps([this] { ServeMeanwhile(); });
  hosted->request = {
      .directory = request.has_directory() ? std::move(message.fds[2]) : ScopedFd(),
      .directory_path = request.directory(),
      .trace_path = request.trace_path(),
      .top = request.top(),
      .quiet = request.quiet(),
      .wants_status = request.wants_status(),
      .wants_dumps = request.wants_dumps(),
      .only_dumps = request.only_dumps(),
      .environment = FinisherEnvironment(request)};
  hosted->standard_error = std::move(message.fds[1]);
  hosted->connection = connection.serial;
  for (const std::unique_ptr<Session>& session : hosted->recording->sessions())
    NoteConflicts(*session);
  HPD_TRY(Attach(*hosted, connection));
  HPD_TRY(hosted->recording->Begin());
  for (const std::string& note : hosted->recording->notes())
    HPD_TRY(connection.channel.Send(ControlType::kNote, note));
  hosted_.push_back(std::move(hosted));
  ++started_;
  door_->SetRecordings(hosted_.size(), /*has_begun=*/true);
  return {};
}

// Programs without a client of ours. What is not possible is told at once.
Status Service::Attach(Hosted& hosted, Connection& connection) {
  std::vector<std::string> notes;
  const AttachPolicy policy{
      .directory = place_,
      .wake_page = place_ + kWakeName,
      .search_path = SearchPath(hosted.request.environment),
      .is_taken =
          [this](pid_t pid) {
            return AnySession([pid](const Session& session) {
              return session.live().IsProfiling(pid);
            });
          },
      .between = [this] { ServeMeanwhile(); },
      .make_watcher = [this] { return door_->Watch([this] { ServeMeanwhile(); }); }};
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
  return Dump(label) + (geteuid() == 0 ? door_->DumpOthers(label) : 0);
}

size_t Service::Dump(const std::string& label) {
  for (const std::unique_ptr<Hosted>& hosted : hosted_)
    hosted->recording->Dump(label);
  return hosted_.size();
}

void Service::StopAll() {
  door_->Close();
  is_stopping_ = true;
  for (const std::unique_ptr<Hosted>& hosted : hosted_)
    hosted->recording->Stop(StopCause::kRequested);
  FinishOver();
}

void Service::FinishOver() {
  for (size_t i = hosted_.size(); i-- > 0;) {
    if (hosted_[i]->recording->cause() == StopCause::kNone)
      continue;
    if (finishers_.count() >= kMaxFinishers && !is_stopping_)
      return;
    Finish(*hosted_[i]);
    hooks_.forget(*hosted_[i]->recording);
    hosted_.erase(hosted_.begin() + static_cast<ptrdiff_t>(i));
    door_->SetRecordings(hosted_.size(), /*has_begun=*/false);
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
  if (connection != nullptr)
    TellStarted(*connection);  // it was very short
  const pid_t service = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    EndWithParent(service, SIGKILL);  // nobody else ends those that take too long
    RunFinisher(hosted, connection != nullptr ? connection->channel.fd() : -1);
  }
  if (pid > 0)
    finishers_.Add(pid);
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
  setpgid(0, 0);
  door_->LeaveToParent();
  for (const std::unique_ptr<Hosted>& other : hosted_)
    other->recording->LeaveToParent();
  connections_.clear();
  if (hosted.standard_error.valid())
    dup2(hosted.standard_error.get(), STDERR_FILENO);
  MakePatient(&stderr, STDERR_FILENO);
  const RecordingOutcome outcome = hooks_.finish(*hosted.recording, hosted.request);
  if (connection >= 0) {
    const Status ignored =
        channel.Send(ControlType::kDone, std::to_string(outcome.exit_code) +
                                             (outcome.has_whole_trace ? " whole" : ""));
    static_cast<void>(ignored);
  }
  _exit(0);
}

}  // namespace heapprofd
