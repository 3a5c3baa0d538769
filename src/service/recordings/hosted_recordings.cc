#include "service/recordings/hosted_recordings.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/fair_turn.h"

namespace heapprofd {
namespace {

// That run or are being finished.
constexpr size_t kMaxRecordings = 64;
constexpr size_t kMaxRecordingsOfRoot = 256;
constexpr int kIdleWaitMs = 20;  // between two looks at rings that are quiet

}  // namespace

Status HostedRecordings::CheckRoom(size_t finishing) const {
  const size_t limit = geteuid() == 0 ? kMaxRecordingsOfRoot : kMaxRecordings;
  if (hosted_.size() + finishing < limit)
    return {};
  return Status(StatusCode::kUnavailable,
                "cannot record: " + std::to_string(hosted_.size()) +
                    " recordings of this user run already, and " +
                    std::to_string(finishing) + " are being finished; stop one");
}

Status HostedRecordings::CheckUnique(const RecordingConfig& config) const {
  for (const std::unique_ptr<HostedRecording>& hosted : hosted_) {
    if (!config.unique_name.empty() &&
        hosted->recording().config().unique_name == config.unique_name)
      return Status(StatusCode::kInvalidArgument,
                    "cannot record: a recording with the unique_session_name " +
                        config.unique_name + " runs already; stop it");
  }
  return {};
}

void HostedRecordings::Add(std::unique_ptr<HostedRecording> hosted) {
  hosted_.push_back(std::move(hosted));
}

std::vector<Session*> HostedRecordings::sessions() const {
  std::vector<Session*> sessions;
  for (const std::unique_ptr<HostedRecording>& hosted : hosted_) {
    for (const std::unique_ptr<Session>& session : hosted->recording().sessions())
      sessions.push_back(session.get());
  }
  return sessions;
}

void HostedRecordings::AddTo(std::vector<pollfd>* fds) const {
  for (Session* session : sessions())
    fds->push_back({.fd = session->starts().fd(), .events = POLLIN, .revents = 0});
}

int HostedRecordings::Serve(const std::function<void(HostedRecording&)>& tell) {
  int wait_ms = hosted_.empty() ? -1 : kIdleWaitMs;
  const uint64_t turn_end_ns = MonotonicNs() + FairTurn::kTurnNs;
  ++turns_;  // each begins with another recording: it may be over before the last one
  for (size_t i = 0; i < hosted_.size(); ++i) {
    HostedRecording& hosted = *hosted_[(turns_ + i) % hosted_.size()];
    wait_ms = std::min(wait_ms, hosted.recording().Serve(kIdleWaitMs, turn_end_ns));
    if (hosted.HasNothingLeft())
      hosted.recording().Stop(StopCause::kRequested);
    tell(hosted);
  }
  return wait_ms;
}

void HostedRecordings::ServeMeanwhile() {
  const uint64_t turn_end_ns = MonotonicNs() + FairTurn::kTurnNs;
  for (Session* session : sessions()) {
    if (!session->is_stopped())
      session->Serve(turn_end_ns);
  }
}

size_t HostedRecordings::Dump(const std::string& label) {
  for (const std::unique_ptr<HostedRecording>& hosted : hosted_)
    hosted->recording().Dump(label);
  return hosted_.size();
}

size_t HostedRecordings::DumpOf(size_t owner, const std::string& label) {
  size_t count = 0;
  for (const std::unique_ptr<HostedRecording>& hosted : hosted_) {
    if (hosted->owner() == owner) {
      hosted->recording().Dump(label);
      ++count;
    }
  }
  return count;
}

void HostedRecordings::StopOf(size_t owner) {
  for (const std::unique_ptr<HostedRecording>& hosted : hosted_) {
    if (hosted->owner() == owner)
      hosted->recording().Stop(StopCause::kRequested);
  }
}

void HostedRecordings::StopAll() {
  for (const std::unique_ptr<HostedRecording>& hosted : hosted_)
    hosted->recording().Stop(StopCause::kRequested);
}

// The youngest, of several.
HostedRecording* HostedRecordings::FindOver() const {
  for (size_t i = hosted_.size(); i-- > 0;) {
    if (hosted_[i]->recording().cause() != StopCause::kNone)
      return hosted_[i].get();
  }
  return nullptr;
}

void HostedRecordings::Remove(const HostedRecording* hosted) {
  std::erase_if(hosted_, [hosted](const std::unique_ptr<HostedRecording>& other) {
    return other.get() == hosted;
  });
}

void HostedRecordings::LeaveToParent() {
  for (const std::unique_ptr<HostedRecording>& hosted : hosted_)
    hosted->recording().LeaveToParent();
}

}  // namespace heapprofd
