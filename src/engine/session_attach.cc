// The part of a session that deals with processes which ran before it.
#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <sstream>

#include "attach/apart.h"
#include "attach/remote_process.h"
#include "engine/process_info.h"
#include "engine/session.h"
#include "engine/target_rules.h"

namespace heapprofd {
namespace {

// A program in production must not be held up: it waits this long for space in the ring,
// then the record is dropped and counted.
constexpr uint64_t kAttachedBlockTimeoutUs = 50'000;
// A process that is about to change (it starts, it executes a program) is asked again.
constexpr uint64_t kPlaceNs = 300'000'000;
constexpr uint64_t kPlaceAgainNs = 5'000'000;
constexpr uint64_t kFollowNs = 20'000'000;     // for forks we look at most so often
constexpr uint64_t kExecLookNs = 200'000'000;  // for executed programs
constexpr uint64_t kExecNs = 1'000'000'000;    // for a new program to have its libraries
constexpr size_t kMaxFamily = 10'000;          // descendants that are looked at
// Children of the others are attached to like any process.
constexpr size_t kMaxSeeds = 4096;

// Those of all its threads.
std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> all;
  const std::string tasks = ProcPath(pid, "task");
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
  while (const dirent* entry =
             directory != nullptr ? readdir(directory.get()) : nullptr) {
    std::istringstream children(ReadProcFile(tasks + "/" + entry->d_name + "/children"));
    for (pid_t child = 0; children >> child;)
      all.push_back(child);
  }
  return all;
}

SessionConfig ConfigFor(const AttachedProcess& attached, SessionConfig config) {
  if (config.block_timeout_us == 0)
    config.block_timeout_us = kAttachedBlockTimeoutUs;
  if (!attached.may_wait())
    config.when_full = WhenFull::kDrop;
  return config;
}

Status HangsInKernel(pid_t pid) {
  return Status(StatusCode::kUnavailable,
                "cannot attach to process " + std::to_string(pid) +
                    ": the kernel does not come to an end with it, or with another of "
                    "its user's (one hangs in the start of a program, on a slow file "
                    "system), or no thread could be made; try again later");
}

}  // namespace

Status Session::Attach(pid_t pid) {
  if (IsProfiling(pid))
    return {};
  const uint64_t deadline = MonotonicNs() + kPlaceNs;
  Status status = PutClientIn(pid);
  while (status.code() == StatusCode::kTryAgain && MonotonicNs() < deadline) {
    SleepNs(kPlaceAgainNs);
    ServeMeanwhile();
    status = PutClientIn(pid);
  }
  return status;
}

Status Session::PutClientIn(pid_t pid) {
  if (const Status room = CheckRoom(pid); !room.ok())
    return Status(room.code(), "cannot attach to process " + std::to_string(pid) + ": " +
                                   room.message());
  attaching_ = pid;
  Status status = PlaceAndHook(pid);
  attaching_ = 0;
  return status;
}

Status Session::PlaceAndHook(pid_t pid) {
  HPD_TRY_ASSIGN(const std::shared_ptr<AttachedProcess> attached, Place(pid));
  HPD_TRY_ASSIGN(Target* const target,
                 AddAttached(attached.get(), /*from_startup=*/false));
  Status status = PutHooksIn(attached);
  if (!status.ok()) {
    Forget(target);
    return status;
  }
  for (LiveTarget& live : live_) {
    if (live.target == target)
      live.attached = attached;
  }
  return {};
}

AttachedProcess::Options Session::AttachOptions() const {
  return {.ring_size = config_.ring_size_bytes,
          .children =
              config_.follow_children ? ChildrenMode::kFollowed : ChildrenMode::kIgnored,
          .recorded = attached_seeds_};
}

Result<std::shared_ptr<AttachedProcess>> Session::Place(pid_t pid) {
  using Placed = Result<std::unique_ptr<AttachedProcess>>;
  const auto placed = std::make_shared<std::optional<Placed>>();
  const auto finder = allocators_;
  const bool is_done = RunApart(
      pid,
      [placed, finder, pid, options = AttachOptions()] {
        *placed = AttachedProcess::Place(pid, options, finder.get());
      },
      [this] { ServeMeanwhile(); });
  if (!is_done) {
    allocators_ = std::make_shared<AllocatorFinder>();  // the thread has the other one
    return HangsInKernel(pid);
  }
  HPD_TRY_ASSIGN(std::unique_ptr<AttachedProcess> attached, std::move(**placed));
  return std::shared_ptr<AttachedProcess>(std::move(attached));
}

Status Session::PutHooksIn(const std::shared_ptr<AttachedProcess>& attached) {
  const auto status = std::make_shared<Status>();
  const bool is_done = RunApart(
      attached->pid(), [status, attached] { *status = attached->PutHooksIn(); },
      [this] { ServeMeanwhile(); });
  return is_done ? *status : HangsInKernel(attached->pid());
}

void Session::Forget(const Target* target) {
  looking_ = looking_ == target ? nullptr : looking_;
  std::erase_if(live_,
                [target](const LiveTarget& live) { return live.target == target; });
  std::erase_if(targets_, [target](const std::unique_ptr<Target>& other) {
    return other.get() == target;
  });
}

// The process whose client is in place becomes a target; its hooks are not in yet.
Result<Target*> Session::AddAttached(AttachedProcess* attached, bool from_startup) {
  const pid_t pid = attached->pid();
  ScopedFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid())
    return Status::FromErrno("cannot watch process " + std::to_string(pid), errno);
  HPD_TRY_ASSIGN(
      std::unique_ptr<SharedMemory> memory,
      SharedMemory::Adopt(attached->TakeEngineFile(), attached->TakeClientFile(),
                          config_.ring_size_bytes));
  HPD_TRY_ASSIGN(std::unique_ptr<Target> target,
                 Target::CreateWith(std::move(memory), attached->opened_view(),
                                    ConfigFor(*attached, config_), &modules_, &clock_));
  target->profile().process.pid = pid;
  programs_.Recorded(pid, MonotonicNs());
  // A forked child that was born with the hooks has counted from its start.
  LiveTarget& live = AddTarget(std::move(target), std::move(pidfd),
                               from_startup || attached->counts_already());
  live.was_attached = true;
  for (const std::string& unpatched : attached->report().unpatched)
    NoteProblem("cannot record all of process " + std::to_string(pid) + ": no hook for " +
                unpatched + "; start it under heap_profile -- PROGRAM to record all");
  if (attached_seeds_.size() >= kMaxSeeds)
    attached_seeds_.erase(attached_seeds_.begin());
  attached_seeds_[attached->seed()] = pid;
  return live.target;
}

Status Session::CatchStarts(ExecWatcher::Filter filter,
                            const ExecWatcher::MakeGate& make_gate) {
  HPD_TRY_ASSIGN(exec_watcher_, ExecWatcher::Start(std::move(filter), AttachOptions(),
                                                   make_gate, [this] {
                                                     if (between_)
                                                       between_();
                                                   }));
  return {};
}

void Session::LeaveToParent() {
  if (exec_watcher_ != nullptr)
    exec_watcher_->LeaveToParent();
}

// Of one that has been caught: the same process may have been a target as the program
// that it was before.
Status Session::Adopt(const std::shared_ptr<ExecWatcher::Caught>& caught) {
  const pid_t pid = caught->process().pid();
  EndTarget(pid);
  HPD_TRY(CheckRoom(pid));
  HPD_TRY_ASSIGN(Target* const target,
                 AddAttached(&caught->process(), /*from_startup=*/true));
  live_.back().is_starting = true;
  accepted_.push_back({.caught = caught,
                       .target = target,
                       .until_ns = MonotonicNs() + ExecWatcher::kEndNs});
  caught->Accept();
  return {};
}

// Of those that have been accepted: we do not wait for the thread that puts their hooks
// in.
void Session::TakeConclusions() {
  std::erase_if(accepted_, [this](const Accepted& accepted) {
    std::unique_ptr<AttachedProcess> attached;
    std::optional<Status> status = accepted.caught->TakeConclusion(&attached);
    if (!status && MonotonicNs() < accepted.until_ns)
      return false;
    const auto live = std::find_if(
        live_.begin(), live_.end(),
        [&accepted](const LiveTarget& one) { return one.target == accepted.target; });
    if (status && status->ok()) {
      live->attached = std::move(attached);
      live->is_starting = false;
      return true;
    }
    Forget(accepted.target);
    NoteStartProblem((status ? *status : ExecWatcher::Hangs()).message());
    return true;
  });
}

void Session::AdoptCaught() {
  TakeConclusions();
  if (exec_watcher_ == nullptr)
    return;
  for (const std::shared_ptr<ExecWatcher::Caught>& caught : exec_watcher_->TakeCaught()) {
    const Status status = Adopt(caught);
    if (status.ok())
      continue;
    caught->Refuse();
    NoteStartProblem(status.message());
  }
  for (std::string& problem : exec_watcher_->TakeProblems())
    NoteStartProblem(std::move(problem));
}

// What was accepted is concluded then, or never will be.
void Session::EndCatching() {
  const std::shared_ptr<ExecWatcher> watcher = std::exchange(exec_watcher_, nullptr);
  if (watcher == nullptr)
    return;
  if (const Status status = watcher->End([this] { ServeMeanwhile(); }); !status.ok())
    NoteProblem(status.message());
  for (Accepted& accepted : accepted_)
    accepted.until_ns = 0;
  TakeConclusions();
}

void Session::NoteStartProblem(std::string problem) {
  pid_t pid = 0;  // stays so when the message is of another form
  sscanf(problem.c_str(), "cannot attach to process %d", &pid);  // NOLINT(cert-err34-c)
  if (pid == 0 || start_problems_.size() >= kMaxProblems)
    return NoteProblem(std::move(problem));
  start_problems_.emplace_back(pid, std::move(problem));
}

std::vector<std::string> Session::attach_problems() const {
  std::vector<std::string> problems = attach_problems_;
  for (const auto& [pid, problem] : start_problems_) {
    const bool is_recorded =
        std::any_of(targets_.begin(), targets_.end(),
                    [id = pid](const auto& target) { return target->pid() == id; });
    if (!is_recorded)
      problems.push_back(problem);
  }
  if (const uint64_t late = LateReads() - late_reads_before_; late > 0)
    problems.push_back(
        "cannot tell all about the processes of other users: " + std::to_string(late) +
        (late == 1 ? " look" : " looks") +
        " at their arguments, mappings or sizes had no answer in time, or none before; "
        "see which of their programs hang");
  return problems;
}

// Many processes can have the same one.
void Session::NoteProblem(std::string problem) {
  if (attach_problems_.size() < kMaxProblems)
    attach_problems_.push_back(std::move(problem));
  else if (attach_problems_.size() == kMaxProblems)
    attach_problems_.emplace_back(
        "there were more problems of the kind; not all are shown");
}

// Nobody tells us when a process that was attached to forks or executes a program.
void Session::FollowAttached() {
  const uint64_t now = clock_.last_ns();
  if (is_stopped_ || IsRunningApart() || now < followed_ns_ + kFollowNs)
    return;
  followed_ns_ = now;
  const bool looks_for_exec = now >= exec_looked_ns_ + kExecLookNs;
  if (looks_for_exec)
    exec_looked_ns_ = now;
  std::vector<pid_t> forked;
  for (LiveTarget& live : live_) {
    if (live.attached == nullptr || !live.pidfd.valid())
      continue;
    const uint32_t forks =
        live.target->memory().client().ring.forks.load(std::memory_order_relaxed);
    if (std::exchange(live.forks_seen, forks) != forks && config_.follow_children)
      forked.push_back(live.target->pid());
    if (looks_for_exec && live.attached->HasBecomeAnother()) {
      execed_[live.target->pid()] = now + kExecNs;
      NoteEnd(live, TargetEnd::kExeced);
    }
  }
  for (const pid_t pid : forked)
    FollowChildren(pid);
  for (const auto& [pid, until] : std::map<pid_t, uint64_t>(execed_))
    FollowExec(pid);
}

std::vector<Session::Relative> Session::ReadFamily(pid_t ancestor) {
  constexpr int kStartTime = 22;
  constexpr uint64_t kPatienceNs = 1'000'000'000;  // nobody looks at a child again
  std::vector<Relative> family = {{.pid = ancestor, .start = 0}};
  for (size_t i = 0; i < family.size() && family.size() < kMaxFamily; ++i) {
    for (const pid_t child : ChildrenOf(family[i].pid)) {
      const GuardedText stat = ReadMemoryFile(child, "stat", kMaxStatText, kPatienceNs);
      const std::string start = StatFields(stat.text, kStartTime, kStartTime);
      if (!start.empty())  // or it hangs, and cannot be attached to
        family.push_back({.pid = child, .start = strtoull(start.c_str(), nullptr, 10)});
    }
  }
  family.erase(family.begin());
  family.resize(std::min(family.size(), kMaxFamily));
  return family;
}

// A process can have many thousand threads, each with children.
std::vector<Session::Relative> Session::FamilyOf(pid_t pid) {
  const auto family = std::make_shared<std::vector<Relative>>();
  const bool is_done = RunApart(
      pid, [family, pid] { *family = ReadFamily(pid); }, [this] { ServeMeanwhile(); });
  return is_done ? *family : std::vector<Relative>();
}

bool Session::IsGiven(pid_t pid) const {
  const std::vector<pid_t>& pids = config_.targets.pids;
  return config_.targets.names.empty() ||
         std::find(pids.begin(), pids.end(), pid) != pids.end();
}

// Who waits for names does not want what those of the names start: `ancestor` is a target
// whose children are looked at.
bool Session::IsFollowed(pid_t pid, pid_t ancestor) const {
  return IsGiven(ancestor) || IsNamedBy(config_.targets, DescribeProcess(pid));
}

// Each child is tried once, of however many processes attached to it is a descendant.
void Session::FollowChildren(pid_t pid) {
  if (children_seen_.size() > 2 * kMaxFamily)
    children_seen_.clear();
  for (const auto& [child, start] : FamilyOf(pid)) {
    if (!children_seen_.emplace(child, start, IsGiven(pid)).second ||
        IsProfiling(child) || !IsFollowed(child, pid))
      continue;
    const Status status = PutClientIn(child);
    if (!status.ok() && status.code() == StatusCode::kUnavailable)
      NoteProblem(status.message());
  }
}

// The process has become another program, which may not have its libraries yet. Those
// that are caught at their start come by themselves.
void Session::FollowExec(pid_t pid) {
  const bool is_over = clock_.last_ns() >= execed_[pid];
  const Status status =
      IsProfiling(pid) || exec_watcher_ != nullptr || !IsFollowed(pid, pid)
          ? Status()
          : PutClientIn(pid);
  if (!status.ok() && status.code() != StatusCode::kNotFound && !is_over)
    return;
  execed_.erase(pid);
  if (!status.ok() && status.code() != StatusCode::kNotFound)
    NoteProblem(status.message());
}

// Children that nobody has followed still have the hooks that they were born with.
void Session::RestoreChildren(pid_t pid) {
  constexpr uint64_t kPatienceNs = 1'000'000'000;  // of other recordings' programs
  const uint64_t deadline = MonotonicNs() + kPatienceNs;
  for (const Relative& relative : FamilyOf(pid)) {
    const pid_t child = relative.pid;
    if (IsProfiling(child))
      continue;
    if (MonotonicNs() > deadline)
      return NoteProblem(
          "cannot take the hooks out of all children of process " + std::to_string(pid) +
          " in time; they do nothing, and the next recording of a child takes them out");
    const auto status = std::make_shared<Status>();
    const bool is_done = RunApart(
        child, [status, child] { *status = AttachedProcess::Restore(child); },
        [this] { ServeMeanwhile(); });
    if (!is_done || status->code() == StatusCode::kUnavailable)
      NoteProblem(is_done ? status->message() : HangsInKernel(child).message());
  }
}

void Session::TakeHooksOut(const std::shared_ptr<AttachedProcess>& attached) {
  const pid_t pid = attached->pid();
  const auto status = std::make_shared<Status>();
  const bool is_done = RunApart(
      pid, [status, attached] { *status = attached->TakeHooksOut(); },
      [this] { ServeMeanwhile(); });
  if (!is_done)
    return NoteProblem(HangsInKernel(pid).message());
  if (!status->ok())
    NoteProblem(status->message());
  attach_reports_.push_back(attached->report());
  RestoreChildren(pid);
}

}  // namespace heapprofd
