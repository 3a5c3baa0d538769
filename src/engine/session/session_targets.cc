#include "engine/session/session_targets.h"

#include <algorithm>
#include <utility>

#include "attach/apart.h"
#include "base/clock.h"
#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

// What a process has left in its ring is read within this time, during which
// others get their turns: a full ring of honest records takes a second.
constexpr uint64_t kRestNs = 30'000'000'000;
constexpr uint64_t kStopNs = 10'000'000'000;  // the same at the end, for all together
constexpr uint64_t kStopTurnNs = 10'000'000;

}  // namespace

SessionTargets::SessionTargets(TscClock* clock,
                               ProgramWatch* programs,
                               std::function<void(std::string)> problems,
                               TakeHooksOut take_hooks_out)
    : clock_(clock),
      programs_(programs),
      problems_(std::move(problems)),
      take_hooks_out_(std::move(take_hooks_out)),
      loop_(clock),
      left_(programs) {}

Status SessionTargets::CheckRoom(pid_t pid) const {
  if (all_.size() >= kMaxTargets)
    return Status(StatusCode::kUnavailable,
                  "too many processes in one session; record fewer at once");
  if (!UserBudget::OfEngine().HasRoom(RealUser(pid).value_or(kNobody)))
    return Status(StatusCode::kUnavailable,
                  "the profiles of its user's processes take all the memory that one "
                  "user may have; end a recording of them");
  return {};
}

LiveTarget& SessionTargets::Add(std::unique_ptr<Target> target, ScopedFd pidfd) {
  target->recorder().set_events(events_);
  target->requests().set_budget(&requested_dumps_, target->user());
  if (const std::string& note = target->recorder().idle().note();
      !note.empty() && !std::exchange(has_told_idle_, true))
    problems_(note);
  loop_.NoteNews();
  live_.push_back({.target = target.get(), .pidfd = std::move(pidfd)});
  all_.push_back(std::move(target));
  return live_.back();
}

void SessionTargets::Forget(const Target* target) {
  loop_.Forget(target);
  left_.Forget(target);  // it may have ended while its hooks were to go in
  std::erase_if(live_,
                [target](const LiveTarget& live) { return live.target == target; });
  std::erase_if(all_, [target](const std::unique_ptr<Target>& other) {
    return other.get() == target;
  });
}

size_t SessionTargets::CountReporting() const {
  return static_cast<size_t>(std::ranges::count_if(
      live_, [](const LiveTarget& live) { return !live.has_ended(); }));
}

const LiveTarget* SessionTargets::FindReporting(pid_t pid) const {
  const auto found = std::ranges::find_if(live_, [pid](const LiveTarget& live) {
    return live.target->pid() == pid && !live.has_ended();
  });
  return found != live_.end() ? &*found : nullptr;
}

LiveTarget* SessionTargets::Find(const Target* target) {
  const auto found = std::ranges::find_if(
      live_, [target](const LiveTarget& live) { return live.target == target; });
  return found != live_.end() ? &*found : nullptr;
}

std::vector<SessionTargets::ForkMemory> SessionTargets::ForkMemories() const {
  std::vector<ForkMemory> memories;
  for (const LiveTarget& live : live_) {
    if (live.was_attached)
      memories.push_back({live.target, &live.target->recorder().memory().client()});
  }
  left_.ForEach([&memories](Target& target) {
    if (const ClientBlock* const left = target.children().left();
        left != nullptr && target.is_attached())
      memories.push_back({&target, left});
  });
  return memories;
}

void SessionTargets::NoteEnd(LiveTarget& live, TargetEnd end) {
  live.pidfd.reset();
  live.target->Stop(end);
  live.rest_end = live.target->recorder().ring().RestEnd();
  live.give_up_ns = MonotonicNs() + kRestNs;
}

void SessionTargets::NoteExec(pid_t pid) {
  for (LiveTarget& live : live_) {
    if (live.target->pid() == pid && !live.has_ended())
      return NoteEnd(live, TargetEnd::kExeced);
  }
}

void SessionTargets::AddTo(std::vector<pollfd>* fds) const {
  for (const LiveTarget& live : live_)
    fds->push_back({.fd = live.pidfd.get(), .events = POLLIN, .revents = 0});
}

void SessionTargets::ReapExited() {
  std::vector<pollfd> fds;
  AddTo(&fds);
  if (poll(fds.data(), fds.size(), 0) <= 0)
    return;
  for (size_t i = fds.size(); i-- > 0;) {
    if (fds[i].revents != 0)
      NoteEnd(live_[i], TargetEnd::kExited);
  }
}

// Those whose hooks are to be taken out must wait while we wait for another
// process.
void SessionTargets::ReleaseEnded() {
  const auto is_over = [now = MonotonicNs()](const LiveTarget& live) {
    return live.has_ended() && !live.is_starting &&
           (live.rest_end == 0 || live.give_up_ns < now) &&
           (live.attached == nullptr || !IsRunningApart());
  };
  while (true) {
    const auto found = std::ranges::find_if(live_, is_over);
    if (found == live_.end())
      break;
    LiveTarget live = std::move(*found);
    live_.erase(found);
    if (live.attached != nullptr)
      take_hooks_out_(live.attached);
    if (live.rest_end != 0)
      live.target->recorder().LoseRest(/*writers_gone=*/true);
    Release(live, /*keeps_children=*/true);
  }
  left_.Look();
}

// Its ring has been read: keeps the result only.
void SessionTargets::Release(const LiveTarget& live, bool keeps_children) {
  Target* target = live.target;
  loop_.Forget(target);
  TargetRecorder& recorder = target->recorder();
  recorder.FinishDump();
  const UnprofiledCounts unprofiled = recorder.unprofiled_children();
  NameUnprofiled(*target, unprofiled, {}, programs_);
  // One that was attached to has its client, and no thread of it may have
  // allocated.
  const bool has_client = live.was_attached || recorder.has_client();
  programs_->Count(target->profile().process.cmdline[0], UnrecordedReason::kNoSpace,
                   has_client ? 0 : 1);
  target->ReleaseRecorder();
  if (!target->children().are_left())
    return;
  if (!keeps_children)
    return target->children().Leave();
  if (std::string problem = left_.Add(target, unprofiled); !problem.empty())
    problems_(std::move(problem));
}

void SessionTargets::StopAll(const std::function<void()>& between) {
  for (LiveTarget& live : live_) {
    if (live.attached != nullptr)
      take_hooks_out_(std::exchange(live.attached, nullptr));
    if (!live.has_ended())
      live.target->Stop(TargetEnd::kRunning);
  }
  ReadAllRings(between);
  LookForIdle(between);
  for (const LiveTarget& live : live_)
    Release(live, /*keeps_children=*/false);
  live_.clear();
  left_.LeaveAll();
}

// Calls that were in a hook when the session ended finish their records within
// moments; whatever is still reserved after this is counted as lost.
void SessionTargets::ReadAllRings(const std::function<void()>& between) {
  clock_->Update();
  std::vector<LiveTarget*> rest;
  for (LiveTarget& live : live_) {
    live.rest_end = live.target->recorder().ring().RestEnd();
    rest.push_back(&live);
  }
  const uint64_t deadline = MonotonicNs() + kStopNs;
  while (!rest.empty() && MonotonicNs() < deadline) {
    std::erase_if(rest, [&between](const LiveTarget* live) {
      if (between)
        between();
      return live->target->recorder().DrainRest(live->rest_end, live->has_ended(),
                                                kStopTurnNs);
    });
  }
  for (const LiveTarget* live : rest)
    live->target->recorder().LoseRest(live->has_ended());
}

// As far as there is time for it: the others have what was found before.
void SessionTargets::LookForIdle(const std::function<void()>& between) {
  const uint64_t deadline = MonotonicNs() + kStopNs;
  for (const LiveTarget& live : live_) {
    IdleLooks& idle = live.target->recorder().idle();
    while (!live.has_ended() && MonotonicNs() < deadline &&
           !idle.Look(IdleMemory::Occasion::kEnd, kStopTurnNs)) {
      if (between)
        between();
    }
  }
}

}  // namespace heapprofd
