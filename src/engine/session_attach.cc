// The part of a session that deals with processes which ran before it.
#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <sstream>

#include "attach/remote_process.h"
#include "engine/session.h"

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
constexpr size_t kMaxChildrenSeen = 1'000'000;

// Descendants of a process, its children first; without those whose parent has ended.
std::vector<pid_t> Family(pid_t ancestor) {
  std::vector<pid_t> family = {ancestor};
  for (size_t i = 0; i < family.size() && family.size() < kMaxFamily; ++i) {
    const std::string tasks = ProcPath(family[i], "task");
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
    while (const dirent* entry =
               directory != nullptr ? readdir(directory.get()) : nullptr) {
      std::istringstream children(
          ReadProcFile(tasks + "/" + entry->d_name + "/children"));
      for (pid_t child = 0; children >> child;)
        family.push_back(child);
    }
  }
  family.erase(family.begin());
  return family;
}

SessionConfig ConfigFor(pid_t pid, SessionConfig config) {
  if (config.block_timeout_us == 0)
    config.block_timeout_us = kAttachedBlockTimeoutUs;
  if (IsAnyUnderSeccomp(pid))  // waiting takes a system call, which its filter may punish
    config.when_full = WhenFull::kDrop;
  return config;
}

}  // namespace

Status Session::Attach(pid_t pid) {
  if (IsProfiling(pid))
    return {};
  const uint64_t deadline = MonotonicNs() + kPlaceNs;
  Status status = PutClientIn(pid);
  while (status.code() == StatusCode::kTryAgain && MonotonicNs() < deadline) {
    SleepNs(kPlaceAgainNs);
    status = PutClientIn(pid);
  }
  return status;
}

Status Session::PutClientIn(pid_t pid) {
  if (targets_.size() >= kMaxTargets)
    return Status(StatusCode::kUnavailable, "too many processes in one session");
  ScopedFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid())
    return Status(StatusCode::kNotFound,
                  "cannot attach to process " + std::to_string(pid) +
                      ": there is no such process; check the number");
  HPD_TRY_ASSIGN(std::unique_ptr<AttachedProcess> attached,
                 AttachedProcess::Place(pid, config_.ring_size_bytes, &allocators_));
  HPD_TRY(AddAttached(attached.get(), std::move(pidfd), /*from_startup=*/false));
  LiveTarget& live = live_.back();
  live.attached = std::move(attached);
  Status status = live.attached->PutHooksIn();
  if (!status.ok()) {
    live_.pop_back();
    targets_.pop_back();
  }
  return status;
}

// The process whose client is in place becomes a target; its hooks are not in yet.
Status Session::AddAttached(AttachedProcess* attached,
                            ScopedFd pidfd,
                            bool from_startup) {
  const pid_t pid = attached->pid();
  HPD_TRY_ASSIGN(
      std::unique_ptr<SharedMemory> memory,
      SharedMemory::Adopt(attached->TakeEngineFile(), attached->TakeClientFile(),
                          config_.ring_size_bytes));
  HPD_TRY_ASSIGN(std::unique_ptr<Target> target,
                 Target::CreateWith(std::move(memory), LiveThread(pid),
                                    ConfigFor(pid, config_), &modules_, &clock_));
  target->profile().process.pid = pid;
  target->profile().from_startup = from_startup;
  target->set_events(events_);
  programs_.Recorded(pid, MonotonicNs());
  busy_until_ns_ = clock_.last_ns() + kBusyNs;
  live_.push_back({.target = target.get(),
                   .pidfd = std::move(pidfd),
                   .attached = nullptr,
                   .was_attached = true,
                   .forks_seen = 0});
  targets_.push_back(std::move(target));
  return {};
}

Status Session::CatchStarts(ExecWatcher::Filter filter, ScopedFd gate) {
  HPD_TRY_ASSIGN(
      exec_watcher_,
      ExecWatcher::Start(std::move(filter), config_.ring_size_bytes, std::move(gate)));
  return {};
}

void Session::LeaveToParent() {
  if (exec_watcher_ != nullptr)
    exec_watcher_->LeaveToParent();
}

bool Session::ReleaseStragglers() {
  TracedThread::ReleaseStragglers();
  return TracedThread::Stragglers() > 0;
}

// Of one that has been caught: the same process may have been a target as the program
// that it was before.
Status Session::Adopt(ExecWatcher::Caught& caught) {
  const pid_t pid = caught.process().pid();
  EndTarget(pid);
  ScopedFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid())
    return Status::FromErrno("cannot watch process " + std::to_string(pid), errno);
  HPD_TRY(AddAttached(&caught.process(), std::move(pidfd), /*from_startup=*/true));
  Status status = caught.Accept(&live_.back().attached);
  if (!status.ok()) {
    live_.pop_back();
    targets_.pop_back();
  }
  return status;
}

void Session::AdoptCaught() {
  if (exec_watcher_ == nullptr)
    return;
  for (const std::shared_ptr<ExecWatcher::Caught>& caught : exec_watcher_->TakeCaught()) {
    const Status status = Adopt(*caught);
    if (status.ok())
      continue;
    caught->Refuse();
    attach_problems_.push_back(status.message());
  }
  for (std::string& problem : exec_watcher_->TakeProblems())
    attach_problems_.push_back(std::move(problem));
}

// Nobody tells us when a process that was attached to forks or executes a program.
void Session::FollowAttached() {
  const uint64_t now = clock_.last_ns();
  if (is_stopped_ || now < followed_ns_ + kFollowNs)
    return;
  followed_ns_ = now;
  const bool looks_for_exec = now >= exec_looked_ns_ + kExecLookNs;
  if (looks_for_exec)
    exec_looked_ns_ = now;
  std::vector<pid_t> forked;
  for (size_t i = live_.size(); i-- > 0;) {
    LiveTarget& live = live_[i];
    if (live.attached == nullptr)
      continue;
    const uint32_t forks =
        live.target->memory().client().ring.forks.load(std::memory_order_relaxed);
    if (std::exchange(live.forks_seen, forks) != forks && config_.follow_children)
      forked.push_back(live.target->pid());
    if (looks_for_exec && live.attached->HasBecomeAnother()) {
      execed_[live.target->pid()] = now + kExecNs;
      Finish(i, TargetEnd::kExeced);
    }
  }
  for (const pid_t pid : forked)
    FollowChildren(pid);
  for (const auto& [pid, until] : std::map<pid_t, uint64_t>(execed_))
    FollowExec(pid);
}

void Session::FollowChildren(pid_t pid) {
  for (const pid_t child : Family(pid)) {
    if (IsProfiling(child) || children_seen_.size() >= kMaxChildrenSeen ||
        !children_seen_.insert(child).second)
      continue;
    const Status status = PutClientIn(child);
    if (!status.ok() && status.code() == StatusCode::kUnavailable)
      attach_problems_.push_back(status.message());
  }
}

// The process has become another program, which may not have its libraries yet. Those
// that are caught at their start come by themselves.
void Session::FollowExec(pid_t pid) {
  const bool is_over = clock_.last_ns() >= execed_[pid];
  const Status status =
      IsProfiling(pid) || exec_watcher_ != nullptr ? Status() : PutClientIn(pid);
  if (!status.ok() && status.code() != StatusCode::kNotFound && !is_over)
    return;
  execed_.erase(pid);
  if (!status.ok() && status.code() != StatusCode::kNotFound)
    attach_problems_.push_back(status.message());
}

// Children that nobody has followed still have the hooks that they were born with.
void Session::RestoreChildren(pid_t pid) {
  constexpr uint64_t kPatienceNs = 1'000'000'000;  // of other recordings' programs
  const uint64_t deadline = MonotonicNs() + kPatienceNs;
  for (const pid_t child : Family(pid)) {
    if (IsProfiling(child))
      continue;
    if (MonotonicNs() > deadline) {
      attach_problems_.push_back(
          "cannot take the hooks out of all children of process " + std::to_string(pid) +
          " in time; they do nothing, and the next recording of a child takes them out");
      return;
    }
    const Status status = AttachedProcess::Restore(child);
    if (!status.ok() && status.code() == StatusCode::kUnavailable)
      attach_problems_.push_back(status.message());
  }
}

void Session::TakeHooksOut(LiveTarget& live) {
  if (live.attached == nullptr)
    return;
  const pid_t pid = live.target->pid();
  if (const Status status = live.attached->TakeHooksOut(); !status.ok())
    attach_problems_.push_back(status.message());
  attach_reports_.push_back(live.attached->report());
  live.attached = nullptr;
  RestoreChildren(pid);
}

}  // namespace heapprofd
