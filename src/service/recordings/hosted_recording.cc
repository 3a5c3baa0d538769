#include "service/recordings/hosted_recording.h"

#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "service/patient_output.h"

namespace heapprofd {
namespace {

std::vector<std::unique_ptr<Session>> SessionsOf(const RecordingConfig& config) {
  std::vector<std::unique_ptr<Session>> sessions;
  for (const SessionConfig& session : config.sessions)
    sessions.push_back(Session::CreateWithoutSocket(session));
  return sessions;
}

}  // namespace

HostedRecording::HostedRecording(const RecordingConfig& config,
                                 RecordingRequest request,
                                 size_t owner)
    : request_(std::move(request.finish)),
      standard_error_(std::move(request.standard_error)),
      owner_(owner),
      recording_(config, SessionsOf(config), std::move(request.trace)) {}

bool HostedRecording::HasNothingLeft() const {
  for (const std::unique_ptr<Session>& session : recording_.sessions()) {
    const TargetRules& rules = session->config().targets;
    if (rules.all || !rules.names.empty() || session->targets().all().empty() ||
        session->targets().size() > 0 || session->targets().has_left_children() ||
        std::any_of(rules.pids.begin(), rules.pids.end(),
                    [](pid_t pid) { return kill(pid, 0) == 0 || errno != ESRCH; }))
      return false;
  }
  return true;
}

void HostedRecording::TellDumps(const ConnectedCommands& commands) {
  const uint64_t dumps = recording_.dump_rounds();
  if (!request_.wants_dumps || dumps == told_dumps_)
    return;
  ConnectedCommand* const owner = commands.Find(owner_);
  if (owner != nullptr && !owner->awaits_start &&
      owner->channel.Send(ControlType::kDumped, std::to_string(dumps)).ok())
    told_dumps_ = dumps;
}

void HostedRecording::TellStatus(const ConnectedCommands& commands,
                                 const std::string& status) const {
  ConnectedCommand* const owner =
      status.empty() || !request_.wants_status ? nullptr : commands.Find(owner_);
  if (owner == nullptr || owner->awaits_start)
    return;
  int unread = 0;  // bytes; what matters must find room, too
  if (ioctl(owner->channel.fd(), SIOCOUTQ, &unread) != 0 || unread > 0)
    return;
  const Status ignored = owner->channel.Send(ControlType::kStatus, status);
  static_cast<void>(ignored);  // its end shows on the channel
}

void HostedRecording::Finish(const FinishHook& finish, ControlChannel* answer) {
  if (standard_error_.valid())
    dup2(standard_error_.get(), STDERR_FILENO);
  MakePatient(&stderr, STDERR_FILENO);
  const RecordingOutcome outcome = finish(recording_, request_);
  if (answer == nullptr)
    return;
  const Status ignored =
      answer->Send(ControlType::kDone, std::to_string(outcome.exit_code) +
                                           (outcome.has_whole_trace ? " whole" : ""));
  static_cast<void>(ignored);
}

}  // namespace heapprofd
