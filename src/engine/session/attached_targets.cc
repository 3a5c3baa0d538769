#include "engine/session/attached_targets.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "attach/apart.h"
#include "attach/leftovers.h"
#include "attach/refusals.h"
#include "attach/remote_process.h"
#include "attach/thread/exec_rights.h"
#include "base/clock.h"
#include "engine/process_info.h"
#include "engine/session/process_family.h"
#include "wire/shared_memory.h"
#include "wire/small_memory.h"

namespace heapprofd {
namespace {

// A program in production must not be held up: it waits this long for space in
// the ring, then the record is dropped and counted.
constexpr uint64_t kAttachedBlockTimeoutUs = 50'000;
// A process that is about to change (it starts, it executes a program) is asked
// again.
constexpr uint64_t kPlaceNs = 1'000'000'000;
constexpr uint64_t kPlaceAgainNs = 5'000'000;
// Children of the others are attached to like any process.
constexpr size_t kMaxSeeds = 4096;

SessionConfig AttachedConfig(SessionConfig config) {
  if (config.block_timeout_us == 0)
    config.block_timeout_us = kAttachedBlockTimeoutUs;
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

Status AttachedTargets::Attach(pid_t pid) {
  if (context_->targets().IsProfiling(pid))
    return {};
  const uint64_t deadline = MonotonicNs() + kPlaceNs;
  Status status = PutClientIn(pid);
  while (status.code() == StatusCode::kTryAgain && MonotonicNs() < deadline) {
    SleepNs(kPlaceAgainNs);
    context_->ServeMeanwhile();
    status = PutClientIn(pid);
  }
  return status;
}

Status AttachedTargets::PutClientIn(pid_t pid, bool only_counting_children) {
  if (const Status room = context_->targets().CheckRoom(pid); !room.ok())
    return Status(room.code(), "cannot attach to process " + std::to_string(pid) + ": " +
                                   room.message());
  if (!IsSettled(pid))
    return Status(StatusCode::kTryAgain, "cannot attach to process " +
                                             std::to_string(pid) +
                                             ": it has just begun; try again");
  AttachedProcess::Options options = Options();
  options.only_counting_children = only_counting_children;
  attaching_ = pid;
  Status status = PlaceAndHook(pid, options);
  attaching_ = 0;
  return status;
}

bool AttachedTargets::IsSettled(pid_t pid) {
  return MayTraceExecs(pid) || settled_.Contains(pid, MonotonicNs());
}

Status AttachedTargets::PlaceAndHook(pid_t pid, const AttachedProcess::Options& options) {
  HPD_TRY_ASSIGN(const std::shared_ptr<AttachedProcess> attached, Place(pid, options));
  HPD_TRY_ASSIGN(Target* const target, Add(attached.get(), /*from_startup=*/false));
  Status status = PutHooksIn(attached);
  if (!status.ok()) {
    context_->targets().Forget(target);
    return status;
  }
  // It may have ended meanwhile.
  if (LiveTarget* live = context_->targets().Find(target))
    live->attached = attached;
  return {};
}

AttachedProcess::Options AttachedTargets::Options() const {
  return {.ring_size = context_->config().ring_size_bytes,
          .children = context_->config().follow_children ? ChildrenMode::kFollowed
                                                         : ChildrenMode::kIgnored,
          .recorded = seeds_};
}

Result<std::shared_ptr<AttachedProcess>> AttachedTargets::Place(
    pid_t pid, const AttachedProcess::Options& options) {
  using Placed = Result<std::unique_ptr<AttachedProcess>>;
  const auto placed = std::make_shared<std::optional<Placed>>();
  const auto finder = allocators_;
  const bool is_done = RunApart(
      pid,
      [placed, finder, pid, options] {
        *placed = AttachedProcess::Place(pid, options, finder.get());
      },
      context_->meanwhile());
  if (!is_done) {
    allocators_ = std::make_shared<AllocatorFinder>();  // the thread has the other one
    return HangsInKernel(pid);
  }
  HPD_TRY_ASSIGN(std::unique_ptr<AttachedProcess> attached, std::move(**placed));
  return std::shared_ptr<AttachedProcess>(std::move(attached));
}

Status AttachedTargets::PutHooksIn(const std::shared_ptr<AttachedProcess>& attached) {
  const auto status = std::make_shared<Status>();
  const bool is_done = RunApart(
      attached->pid(), [status, attached] { *status = attached->PutHooksIn(); },
      context_->meanwhile());
  return is_done ? *status : HangsInKernel(attached->pid());
}

// The process whose client is in place becomes a target; its hooks are not in
// yet.
Result<Target*> AttachedTargets::Add(AttachedProcess* attached, bool from_startup) {
  const pid_t pid = attached->pid();
  ScopedFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid())
    return Status::FromErrno("cannot watch process " + std::to_string(pid), errno);
  if (attached->HasBecomeAnother())  // and so the descriptor is of another process
    return LostRace(pid, "it has just ended or become another program");
  // A forked child that was born with the hooks has counted from its start.
  const Target::Origin origin{.pid = pid,
                              .thread = attached->opened_view(),
                              .process = pidfd.get(),
                              .from_startup = from_startup || attached->counts_already(),
                              .is_attached = true};
  HPD_TRY_ASSIGN(std::unique_ptr<Target> target,
                 Target::CreateWith(attached->TakeMemory(), origin,
                                    AttachedConfig(context_->config()),
                                    &context_->modules(), &context_->clock()));
  context_->programs().Recorded(pid, MonotonicNs());
  LiveTarget& live = context_->targets().Add(std::move(target), std::move(pidfd));
  live.was_attached = true;
  for (const std::string& unpatched : attached->report().unpatched)
    context_->problems().Note("cannot record all of process " + std::to_string(pid) +
                              ": no hook for " + unpatched +
                              "; start it under heap_profile -- PROGRAM to record all");
  if (seeds_.size() >= kMaxSeeds)
    seeds_.erase(seeds_.begin());
  seeds_[attached->seed()] = pid;
  return live.target;
}

// Children that nobody has followed still have the hooks that they were born
// with.
void AttachedTargets::RestoreChildren(pid_t pid) {
  constexpr uint64_t kPatienceNs = 1'000'000'000;  // of other recordings' programs
  const uint64_t deadline = MonotonicNs() + kPatienceNs;
  const std::vector<Relative> family = FamilyOf(pid, context_->meanwhile());
  for (const Relative& relative : family)
    IsSettled(relative.pid);  // all wait at once
  for (const Relative& relative : family) {
    const pid_t child = relative.pid;
    if (context_->targets().IsProfiling(child))
      continue;
    while (!IsSettled(child) && MonotonicNs() < deadline) {
      SleepNs(kPlaceAgainNs);
      context_->ServeMeanwhile();
    }
    if (MonotonicNs() > deadline)
      return context_->problems().Note(
          "cannot take the hooks out of all children of process " + std::to_string(pid) +
          " in time; they do nothing, and the next recording of a child takes "
          "them out");
    const auto status = std::make_shared<Status>();
    const bool is_done = RunApart(
        child, [status, child] { *status = RestoreProcess(child); },
        context_->meanwhile());
    if (!is_done || status->code() == StatusCode::kUnavailable)
      context_->problems().Note(is_done ? status->message()
                                        : HangsInKernel(child).message());
  }
}

void AttachedTargets::TakeHooksOut(const std::shared_ptr<AttachedProcess>& attached) {
  const pid_t pid = attached->pid();
  const auto status = std::make_shared<Status>();
  const auto unseen = std::make_shared<std::vector<std::string>>();
  const auto finder = allocators_;
  const bool is_done = RunApart(
      pid,
      [status, unseen, finder, attached] {
        *unseen = attached->AllocatorsSince(finder.get());
        *status = attached->TakeHooksOut();
      },
      context_->meanwhile());
  if (!is_done) {
    allocators_ = std::make_shared<AllocatorFinder>();  // the thread has the other one
    return context_->problems().Note(HangsInKernel(pid).message());
  }
  for (const std::string& path : *unseen)
    context_->problems().Note("cannot record all of process " + std::to_string(pid) +
                              ": it has loaded " + path +
                              " since heap_profile attached, and what that allocates was "
                              "not seen; record again with -p");
  if (!status->ok())
    context_->problems().Note(status->message());
  reports_.push_back(attached->report());
  RestoreChildren(pid);
}

}  // namespace heapprofd
