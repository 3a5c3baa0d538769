#include "service/service.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/files/passed_fds.h"
#include "service/recordings/attaching.h"
#include "service/recordings/program_admission.h"
#include "service/recordings/recording_request.h"
#include "wire/service_place.h"

namespace heapprofd {
namespace {

// That are being finished at a time; others wait their turn.
constexpr size_t kMaxFinishers = 8;

// Gives the reason why a command is not served; empty when it is.
std::string WhyNotServed(const Visitor& visitor) {
  if (visitor.user != 0 && visitor.user != geteuid())
    return "cannot serve the command: this service records for root alone; run "
           "heap_profile as root, or without HEAPPROFD_DIRECTORY, so that a service of "
           "your own records your programs";
  if (visitor.user == 0 && geteuid() == 0 && !HasRootsRights(visitor))
    return "cannot serve the command: it is one of user 0 without root's rights where "
           "the service runs (CAP_SYS_PTRACE, in its user and PID name space); run it "
           "there, or set HEAPPROFD_DIRECTORY to an empty directory to record with the "
           "rights that it has";
  return "";
}

}  // namespace

Service::Service(std::unique_ptr<Door> door, std::string place, ServiceHooks hooks)
    : door_(std::move(door)), place_(std::move(place)), hooks_(std::move(hooks)) {}

Service::~Service() = default;

bool Service::is_idle() const {
  return recordings_.size() == 0 && commands_.is_empty() && finishers_.count() == 0 &&
         door_->is_empty();
}

void Service::Poll(int max_wait_ms, int wake_fd) {
  int wait_ms = recordings_.Serve([this](HostedRecording& hosted) {
    hosted.TellDumps(commands_);
    hosted.TellStatus(commands_, hooks_.observe(hosted.recording()));
    for (const std::unique_ptr<Session>& session : hosted.recording().sessions())
      hosted.seen_starts(session.get()).Look(*session, PolicyFor(hosted));
  });
  FinishOver();
  for (const int limit_ms :
       {finishers_.MillisecondsToNext(), commands_.MillisecondsToNext(),
        door_->MillisecondsToNext(), max_wait_ms}) {
    if (limit_ms >= 0)
      wait_ms = wait_ms < 0 ? limit_ms : std::min(wait_ms, limit_ms);
  }
  std::vector<pollfd> fds;
  door_->AddTo(&fds);
  fds.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  commands_.AddTo(&fds);
  recordings_.AddTo(&fds);
  poll(fds.data(), fds.size(), wait_ms);
  door_->Serve(*this);
  commands_.Serve(
      [this](ConnectedCommand& command, ControlMessage message) {
        return Handle(command, std::move(message));
      },
      [this](size_t serial) { recordings_.StopOf(serial); });
  commands_.TellStarted();
  finishers_.Reap();
}

// While one recording takes its time.
void Service::ServeMeanwhile() {
  recordings_.ServeMeanwhile();
  door_->Serve(*this);
}

void Service::AdmitCommand(Visitor visitor) {
  if (const std::string why = WhyNotServed(visitor); !why.empty())
    return Refuse(visitor, why);
  has_served_ = true;
  commands_.Admit(std::move(visitor));
}

void Service::AdmitProgram(Visitor visitor) {
  AdmitProgramTo(recordings_.sessions(), std::move(visitor));
}

void Service::NoteMissed(pid_t pid) {
  NoteMissedBy(recordings_.sessions(), pid);
}

bool Service::Handle(ConnectedCommand& command, ControlMessage message) {
  switch (message.type) {
    case ControlType::kPrepare:  // of our own user, who can only hold up this service
      AcceptFds(command.channel.fd());
      return command.channel.Send(ControlType::kReady, "").ok();
    case ControlType::kMark:
      return command.channel
          .Send(ControlType::kMarked, std::to_string(DumpFor(command, message.payload)))
          .ok();
    case ControlType::kStart: {
      const Status status = Start(command, std::move(message));
      if (status.ok()) {
        command.has_recording = true;
        command.awaits_start = true;
        return true;
      }
      const bool is_its_fault = status.code() == StatusCode::kInvalidArgument;
      return command.channel
          .Send(is_its_fault ? ControlType::kFailed : ControlType::kUnavailable,
                status.message())
          .ok();
    }
    case ControlType::kStop:
      recordings_.StopOf(command.serial);
      return true;
    default:
      return false;
  }
}

Status Service::Start(ConnectedCommand& command, ControlMessage message) {
  HPD_TRY_ASSIGN(RecordingRequest request, TakeRequest(std::move(message)));
  HPD_TRY(recordings_.CheckRoom(finishers_.count()));
  HPD_TRY_ASSIGN(RecordingConfig config,
                 ParseTraceConfig(request.trace_config, ConfigForm::kBinary));
  HPD_TRY(recordings_.CheckUnique(config));
  auto hosted =
      std::make_unique<HostedRecording>(config, std::move(request), command.serial);
  hosted->recording().set_between_dumps([this] { ServeMeanwhile(); });
  for (const std::unique_ptr<Session>& session : hosted->recording().sessions())
    NoteConflicts(recordings_.sessions(), *session);
  HPD_TRY(Attach(*hosted, command));
  HPD_TRY(hosted->recording().Begin());
  for (const std::string& note : hosted->recording().notes())
    HPD_TRY(command.channel.Send(ControlType::kNote, note));
  recordings_.Add(std::move(hosted));
  door_->SetRecordings(recordings_.size(), /*has_begun=*/true);
  return {};
}

AttachPolicy Service::PolicyFor(const HostedRecording& hosted) {
  return {
      .directory = place_,
      .wake_page = place_ + kWakeName,
      .search_path = hosted.request().SearchPath(),
      .is_taken = [this](pid_t pid) { return IsRecordedBy(recordings_.sessions(), pid); },
      .between = [this] { ServeMeanwhile(); },
      .make_watcher = [this] { return door_->Watch([this] { ServeMeanwhile(); }); }};
}

// Programs without a client of ours. What is not possible is told at once.
Status Service::Attach(HostedRecording& hosted, ConnectedCommand& command) {
  std::vector<std::string> notes;
  const AttachPolicy policy = PolicyFor(hosted);
  for (const std::unique_ptr<Session>& session : hosted.recording().sessions()) {
    // First: no program falls in between.
    if (!CatchStarting(*session, policy, &notes))
      hosted.seen_starts(session.get()).Begin();
    HPD_TRY(AttachToRunning(*session, policy, &notes));
  }
  for (const std::string& note : notes)
    HPD_TRY(command.channel.Send(ControlType::kNote, note));
  return {};
}

size_t Service::DumpFor(const ConnectedCommand& command, const std::string& label) {
  if (const size_t own = recordings_.DumpOf(command.serial, label); own > 0)
    return own;
  return Dump(label);
}

size_t Service::Dump(const std::string& label) {
  return recordings_.Dump(label);
}

void Service::StopAll() {
  door_->Close();
  is_stopping_ = true;
  recordings_.StopAll();
  FinishOver();
}

void Service::FinishOver() {
  while (HostedRecording* const over = recordings_.FindOver()) {
    if (finishers_.count() >= kMaxFinishers && !is_stopping_)
      return;
    Finish(*over);
    hooks_.forget(over->recording());
    recordings_.Remove(over);
    door_->SetRecordings(recordings_.size(), /*has_begun=*/false);
  }
}

// The finisher has the connection to itself: it answers, and whatever becomes of it, its
// end closes the connection.
void Service::Finish(HostedRecording& hosted) {
  ConnectedCommand* const owner = commands_.Find(hosted.owner());
  if (owner != nullptr)
    owner->TellStarted();  // it was very short
  const Status begun = finishers_.Begin([this, &hosted, owner] {
    // Neither the socket nor the lock may live on in here when the service is killed, nor
    // other people's connections when it closes them.
    const bool has_owner = owner != nullptr;
    ControlChannel answer{
        ScopedFd(has_owner ? fcntl(owner->channel.fd(), F_DUPFD_CLOEXEC, 0) : -1)};
    door_->LeaveToParent();
    recordings_.LeaveToParent();
    commands_.LeaveToParent();
    hosted.Finish(hooks_.finish, has_owner ? &answer : nullptr);
  });
  if (owner == nullptr)
    return;
  if (!begun.ok()) {
    const Status ignored = owner->channel.Send(ControlType::kFailed, begun.message());
    static_cast<void>(ignored);
  }
  commands_.Close(owner->serial);
}

}  // namespace heapprofd
