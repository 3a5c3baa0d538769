#include "engine/session.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "attach/apart.h"
#include "engine/silent_processes.h"

namespace heapprofd {
namespace {

constexpr size_t kRecordsPerTurn =
    20'000;  // of one target, before the others get their turn
// What a process has left in its ring is read within this time, during which others get
// their turns: a full ring of honest records takes a second.
constexpr uint64_t kRestNs = 30'000'000'000;
constexpr uint64_t kStopNs = 10'000'000'000;  // the same at the end, for all together
constexpr uint64_t kStopTurnNs = 10'000'000;
// Each wait ends in a timer interrupt, which the kernel likes to take on the target's
// processor, and each look at a ring takes cache lines away from its writers: so the
// waits are as long as the rings' space allows. While code is new they are short, for
// until its rules are published each sample in it copies its stack.
constexpr int kMinWaitMs = 1;
constexpr int kMaxWaitMs = 10;
constexpr int kLastTurns = 256;        // for what was said before the end
constexpr double kLowFill = 1.0 / 64;  // of the ring, when a wait ends
constexpr double kHighFill = 1.0 / 8;

// When the looks at children of all sessions of this process have been made up for.
uint64_t g_looks_paid_ns = 0;

// Processes that have ended and have children that count: a descriptor each, of those
// that we may have.
size_t MaxAwaiting() {
  constexpr rlim_t kMost = 1024;
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::min(limit.rlim_cur / 8, kMost) : 0;
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
  if (exec_watcher_ != nullptr)
    exec_watcher_->Leave();
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
  int wait_ms = std::min({DrainAll(MonotonicNs() + FairTurn::kTurnNs), max_wait_ms,
                          clients_.MillisecondsToDeadline()});
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
  if (has_news) {
    AdoptCaught();
    ReapExited();
  }
  ReleaseEnded();
  LookAfterChildren();
}

int Session::Serve(uint64_t turn_end_ns) {
  AdoptCaught();
  ReapExited();
  const int wait_ms = DrainAll(turn_end_ns);
  ReleaseEnded();
  LookAfterChildren();
  FollowAttached();
  return wait_ms;
}

void Session::ServeMeanwhile() {
  DrainAll(MonotonicNs() + FairTurn::kTurnNs);
  if (between_)
    between_();
}

size_t Session::CountSilent() const {
  if (socket_path_.empty() || !config_.follow_children)
    return 0;
  return CountSilentProcesses(socket_path_,
                              [this](pid_t pid) { return IsProfiling(pid); });
}

bool Session::IsProfiling(pid_t pid) const {
  return std::any_of(live_.begin(), live_.end(), [pid](const LiveTarget& live) {
    return live.target->pid() == pid && live.pidfd.valid();
  });
}

size_t Session::CountReporting() const {
  return static_cast<size_t>(
      std::count_if(live_.begin(), live_.end(),
                    [](const LiveTarget& live) { return live.pidfd.valid(); }));
}

bool Session::SeesAllOf(pid_t pid) const {
  return config_.heaps.IsMallocAlone() &&
         std::any_of(live_.begin(), live_.end(), [pid](const LiveTarget& live) {
           return live.target->pid() == pid && live.pidfd.valid() &&
                  (live.is_starting ||
                   (live.attached != nullptr && !live.attached->HasBecomeAnother()));
         });
}

void Session::NoteRejected(const ProcessDescription& process) {
  if (rejected_.size() >= kMaxRejected)
    return programs_.Count(process.cmdline[0], UnrecordedReason::kDeclined, 1);
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

size_t Session::CountUsers() const {
  std::set<uid_t> users;
  for (const LiveTarget& live : live_)
    users.insert(live.target->user());
  return users.size();
}

// Begins where the turn before had to leave off. Every target is told that we move: its
// program waits only as long as it sees that.
int Session::DrainAll(uint64_t turn_end_ns) {
  clock_.Update();
  turn_.Begin(clock_.last_ns(), turn_end_ns, CountUsers());
  double fill = 0;
  bool is_learning = false;
  bool is_pending = false;
  bool did_read = false;
  const size_t count = live_.size();
  const size_t first = std::exchange(first_, 0);
  for (size_t i = 0; i < count; ++i) {
    const size_t index = (first + i) % count;
    LiveTarget& live = live_[index];
    Target& target = *live.target;
    if (!target.is_recording())
      continue;
    const RingDrain& ring = target.recorder().ring();
    fill = std::max(fill, ring.fill());
    const uint64_t position = ring.position();
    const Quality& quality = target.profile().quality;
    const uint64_t copies = quality.copied_samples;
    if (DrainOne(live)) {
      first_ = is_pending ? first_ : index;
      is_pending = true;
    }
    is_learning |= quality.copied_samples != copies;
    did_read |= ring.position() != position;
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

bool Session::DrainOne(LiveTarget& live) {
  Target& target = *live.target;
  TargetRecorder& recorder = target.recorder();
  const RingDrain& ring = recorder.ring();
  const bool has_ended = !live.pidfd.valid();
  const uint64_t begin_ns = MonotonicNs();
  const uint64_t left_ns = turn_.Left(target.user(), begin_ns);
  if (has_ended && live.give_up_ns < begin_ns)
    return false;
  if (left_ns == 0) {
    recorder.Tick(/*end_ns=*/0);
    return has_ended || ring.fill() > 0;
  }
  recorder.Drain(kRecordsPerTurn, has_ended, left_ns);
  recorder.Tick(begin_ns + left_ns);
  if (looking_ == nullptr || looking_ == &target) {
    FollowedChildren& children = target.children();
    children.FreeSlots(recorder.memory().client(), begin_ns + left_ns);
    looking_ = children.is_looking() ? &target : nullptr;
  }
  turn_.Note(target.user(), MonotonicNs() - begin_ns);
  if (has_ended && (!ring.is_behind() || ring.position() >= live.rest_end))
    live.rest_end = 0;
  return ring.is_behind();
}

void Session::EndTarget(pid_t pid) {
  for (LiveTarget& live : live_) {
    if (live.target->pid() == pid && live.pidfd.valid())
      return NoteEnd(live, TargetEnd::kExeced);
  }
}

void Session::NoteEnd(LiveTarget& live, TargetEnd end) {
  live.pidfd.reset();
  live.target->Stop(end);
  live.rest_end = live.target->recorder().ring().RestEnd();
  live.give_up_ns = MonotonicNs() + kRestNs;
}

// Those whose hooks are to be taken out must wait while we wait for another process.
void Session::ReleaseEnded() {
  const auto is_over = [now = MonotonicNs()](const LiveTarget& live) {
    return !live.pidfd.valid() && !live.is_starting &&
           (live.rest_end == 0 || live.give_up_ns < now) &&
           (live.attached == nullptr || !IsRunningApart());
  };
  while (true) {
    const auto found = std::find_if(live_.begin(), live_.end(), is_over);
    if (found == live_.end())
      return;
    LiveTarget live = std::move(*found);
    live_.erase(found);
    if (live.attached != nullptr)
      TakeHooksOut(live.attached);
    if (live.rest_end != 0)
      live.target->recorder().LoseRest(/*writers_gone=*/true);
    Release(live);
  }
}

// Its ring has been read: keeps the result only.
void Session::Release(const LiveTarget& live) {
  Target* target = live.target;
  looking_ = looking_ == target ? nullptr : looking_;
  TargetRecorder& recorder = target->recorder();
  recorder.FinishDump();
  const std::string& name = target->profile().process.cmdline[0];
  programs_.Count(name, UnrecordedReason::kConfined, recorder.confined_children());
  // One that was attached to has its client, and no thread of it may have allocated.
  const bool has_client = live.was_attached || recorder.has_client();
  programs_.Count(name, UnrecordedReason::kNoSpace, has_client ? 0 : 1);
  target->ReleaseRecorder();
  if (!target->children().are_left())
    return;
  if (is_stopped_)
    return target->children().Leave();
  awaiting_children_.push_back(target);
  if (awaiting_children_.size() > MaxAwaiting())
    LeaveEarliestChildren();
}

// Without a look: those are paced.
void Session::LeaveEarliestChildren() {
  awaiting_children_.front()->children().Leave();
  awaiting_children_.pop_front();
  if (!std::exchange(has_left_children_, true))
    NoteProblem(
        "cannot count all that forked children may go on to allocate: more than " +
        std::to_string(awaiting_children_.size()) +
        " processes have ended before their children were known to have; record fewer "
        "programs at once, or raise the limit of open files (ulimit -n, up to 8192)");
}

// For a moment, and not again for ten times as long, for all sessions together: what the
// kernel has to look at for it is theirs. Where none has ended there is no hurry.
void Session::LookAfterChildren() {
  constexpr uint64_t kTurnNs = 1'000'000;
  constexpr uint64_t kPauseNs = 20'000'000;
  const uint64_t begin_ns = MonotonicNs();
  const size_t count = awaiting_children_.size();
  if (count == 0 || begin_ns < look_after_children_ns_)
    return;
  for (size_t left = count; left > 0 && MonotonicNs() < begin_ns + kTurnNs; --left) {
    Target* target = awaiting_children_.front();
    awaiting_children_.pop_front();
    target->children().LookAfter();
    if (target->children().are_left())
      awaiting_children_.push_back(target);
  }
  const uint64_t end_ns = MonotonicNs();
  g_looks_paid_ns = std::max(g_looks_paid_ns, end_ns) + 10 * (end_ns - begin_ns);
  look_after_children_ns_ = awaiting_children_.size() < count
                                ? g_looks_paid_ns
                                : std::max(g_looks_paid_ns, end_ns + kPauseNs);
}

void Session::ReapExited() {
  std::vector<pollfd> fds;
  for (const LiveTarget& live : live_)
    fds.push_back({.fd = live.pidfd.get(), .events = POLLIN, .revents = 0});
  if (poll(fds.data(), fds.size(), 0) <= 0)
    return;
  for (size_t i = fds.size(); i-- > 0;) {
    if (fds[i].revents != 0)
      NoteEnd(live_[i], TargetEnd::kExited);
  }
}

void Session::StopAtGuardrail() {
  for (const std::unique_ptr<Target>& target : targets_)
    target->NoteGuardrail();
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
  EndCatching();
  execed_.clear();
  ReapExited();
  for (LiveTarget& live : live_) {
    if (live.attached != nullptr)
      TakeHooksOut(std::exchange(live.attached, nullptr));
    if (live.pidfd.valid())
      live.target->Stop(TargetEnd::kRunning);
  }
  ReadAllRings();
  for (const LiveTarget& live : live_)
    Release(live);
  live_.clear();
  for (Target* target : awaiting_children_)
    target->children().Leave();
  awaiting_children_.clear();
}

// Calls that were in a hook when the session ended finish their records within moments;
// whatever is still reserved after this is counted as lost.
void Session::ReadAllRings() {
  clock_.Update();
  std::vector<LiveTarget*> rest;
  for (LiveTarget& live : live_) {
    live.rest_end = live.target->recorder().ring().RestEnd();
    rest.push_back(&live);
  }
  const uint64_t deadline = MonotonicNs() + kStopNs;
  while (!rest.empty() && MonotonicNs() < deadline) {
    std::erase_if(rest, [this](const LiveTarget* live) {
      if (between_)
        between_();
      return live->target->recorder().DrainRest(live->rest_end, !live->pidfd.valid(),
                                                kStopTurnNs);
    });
  }
  for (const LiveTarget* live : rest)
    live->target->recorder().LoseRest(!live->pidfd.valid());
}

}  // namespace heapprofd
