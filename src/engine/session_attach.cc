// The part of a session that deals with processes which ran before it.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/session.h"

namespace heapprofd {
namespace {

// A program in production must not be held up: it waits this long for space in the ring,
// then the record is dropped and counted.
constexpr uint64_t kAttachedBlockTimeoutUs = 50'000;
constexpr int kPlaceTries = 5;

SessionConfig ConfigFor(pid_t pid, SessionConfig config) {
  if (config.block_timeout_us == 0)
    config.block_timeout_us = kAttachedBlockTimeoutUs;
  if (IsUnderSeccomp(pid))  // waiting takes a system call, which its filter may punish
    config.when_full = WhenFull::kDrop;
  return config;
}

}  // namespace

Status Session::Attach(pid_t pid) {
  if (IsProfiling(pid))
    return {};
  ScopedFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid())
    return Status(StatusCode::kNotFound,
                  "cannot attach to process " + std::to_string(pid) +
                      ": there is no such process; check the number");
  Result<std::unique_ptr<AttachedProcess>> placed =
      AttachedProcess::Place(pid, config_.ring_size_bytes, &allocators_);
  for (int i = 1;
       i < kPlaceTries && !placed.ok() && placed.status().code() == StatusCode::kTryAgain;
       ++i)
    placed = AttachedProcess::Place(pid, config_.ring_size_bytes, &allocators_);
  if (!placed.ok())
    return placed.status();
  std::unique_ptr<AttachedProcess> attached = std::move(placed).value();
  HPD_TRY(AddAttached(attached.get(), std::move(pidfd), /*from_startup=*/false));
  LiveTarget& live = live_.back();
  live.attached = std::move(attached);
  const Status status = live.attached->PutHooksIn();
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
                 Target::CreateWith(std::move(memory), pid, ConfigFor(pid, config_),
                                    &modules_, &clock_));
  target->profile().from_startup = from_startup;
  target->set_events(events_);
  programs_.Recorded(pid, MonotonicNs());
  busy_until_ns_ = clock_.last_ns() + kBusyNs;
  live_.push_back(
      {.target = target.get(), .pidfd = std::move(pidfd), .attached = nullptr});
  targets_.push_back(std::move(target));
  return {};
}

Status Session::CatchStarts(ExecWatcher::Filter filter) {
  HPD_TRY_ASSIGN(exec_watcher_,
                 ExecWatcher::Start(std::move(filter), config_.ring_size_bytes));
  return {};
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
  const Status status = caught.Accept(&live_.back().attached);
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

void Session::TakeHooksOut(LiveTarget& live) {
  if (live.attached == nullptr)
    return;
  if (const Status status = live.attached->TakeHooksOut(); !status.ok())
    attach_problems_.push_back(status.message());
  attach_reports_.push_back(live.attached->report());
  live.attached = nullptr;
}

}  // namespace heapprofd
