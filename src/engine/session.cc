#include "engine/session.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "engine/process_info.h"
#include "engine/silent_processes.h"

namespace heapprofd {
namespace {

constexpr size_t kRecordsPerTurn =
    20'000;  // of one target, before the others get their turn
constexpr uint64_t kTurnNs = 100'000'000;  // of all targets
// Each wait ends in a timer interrupt, which the kernel likes to take on the target's
// processor, and each look at a ring takes cache lines away from its writers: so the
// waits are as long as the rings' space allows. While code is new they are short, for
// until its rules are published each sample in it copies its stack.
constexpr int kMinWaitMs = 1;
constexpr int kMaxWaitMs = 10;
constexpr int kLastTurns = 256;        // for what was said before the end
constexpr double kLowFill = 1.0 / 64;  // of the ring, when a wait ends
constexpr double kHighFill = 1.0 / 8;

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

std::string Session::EnvironmentFor(pid_t pid) const {
  if (config_.follow_children)
    return socket_path_;
  return std::to_string(pid) + "," + socket_path_;
}

void Session::Poll(int max_wait_ms, int wake_fd) {
  int wait_ms = std::min({DrainAll(), max_wait_ms, clients_.MillisecondsToDeadline()});
  if (is_behind_)
    wait_ms = 0;
  std::vector<pollfd> fds;
  fds.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  fds.push_back({.fd = wake_fd, .events = POLLIN, .revents = 0});
  fds.push_back({.fd = caught_fd(), .events = POLLIN, .revents = 0});
  for (const LiveTarget& live : live_)
    fds.push_back({.fd = live.pidfd.get(), .events = POLLIN, .revents = 0});
  clients_.AddTo(&fds);
  const bool has_news = poll(fds.data(), fds.size(), wait_ms) > 0;
  is_behind_ = ServeClients();
  if (!has_news)
    return;
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

bool Session::SeesAllOf(pid_t pid) const {
  return config_.heaps.IsMallocAlone() &&
         std::any_of(live_.begin(), live_.end(), [pid](const LiveTarget& live) {
           return live.target->pid() == pid && live.attached != nullptr &&
                  !live.attached->HasBecomeAnother();
         });
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

// A turn ends after kTurnNs, and the next one goes on with the next target: whoever comes
// meanwhile is answered before a crowd of busy ones has been served.
int Session::DrainAll() {
  clock_.Update();
  Beat();
  const uint64_t end_ns = clock_.last_ns() + kTurnNs;
  double fill = 0;
  bool is_learning = false;
  bool is_pending = false;
  bool did_read = false;
  for (size_t i = 0; i < live_.size(); ++i) {
    Target& target = *live_[next_target_++ % live_.size()].target;
    fill = std::max(fill, target.ring_fill());
    const uint64_t copies = target.quality().copied_samples;
    const size_t records = target.Drain(kRecordsPerTurn, /*writers_gone=*/false);
    target.Tick();
    is_learning |= target.quality().copied_samples != copies;
    is_pending |= target.is_behind();
    did_read |= records > 0;
    if (i + 1 < live_.size() && MonotonicNs() > end_ns) {
      is_pending = true;
      break;
    }
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

// Programs whose rings are full wait as long as they see us move.
void Session::Beat() {
  for (const LiveTarget& live : live_)
    live.target->Beat();
}

void Session::EndTarget(pid_t pid) {
  for (size_t i = 0; i < live_.size(); ++i) {
    if (live_[i].target->pid() == pid) {
      Finish(i, TargetEnd::kExeced);
      return;
    }
  }
}

// The process image is gone.
void Session::Finish(size_t index, TargetEnd end) {
  Target* target = live_[index].target;
  TakeHooksOut(live_[index]);
  clock_.Update();
  target->DrainRest(/*writers_gone=*/true);
  target->Stop(end);
  Release(live_[index]);
  live_.erase(live_.begin() + static_cast<ptrdiff_t>(index));
}

// Its ring has been read: keeps the result only.
void Session::Release(const LiveTarget& live) {
  Target* target = live.target;
  target->UpdateDump();
  const std::string& name = target->profile().process.cmdline[0];
  programs_.Count(name, UnrecordedReason::kConfined, target->confined_children());
  // One that was attached to has its client, and no thread of it may have allocated.
  const bool has_client = live.was_attached || target->has_client();
  programs_.Count(name, UnrecordedReason::kNoSpace, has_client ? 0 : 1);
  target->ReleaseRecorder();
}

void Session::ReapExited() {
  std::vector<pollfd> fds;
  for (const LiveTarget& live : live_)
    fds.push_back({.fd = live.pidfd.get(), .events = POLLIN, .revents = 0});
  if (poll(fds.data(), fds.size(), 0) <= 0)
    return;
  for (size_t i = fds.size(); i-- > 0;) {
    if (fds[i].revents == 0)
      continue;
    Finish(i, TargetEnd::kExited);
    Beat();
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
    // What was said before the end counts.
    for (int turn = 0; ServeClients() && turn < kLastTurns; ++turn) {
    }
    clients_.clear();
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
    Release(live);
  }
  live_.clear();
}

}  // namespace heapprofd
