#include "attach/attached_process.h"

#include <algorithm>

#include "attach/refusals.h"
#include "attach/stopped_process.h"
#include "attach/wait_limit.h"

namespace heapprofd {
namespace {

Status DoesNotLeave(pid_t pid) {
  return CannotAttach(pid,
                      "one of its threads does not leave the first instructions of its "
                      "allocator, and cannot be led out of them; try again");
}

// Those of the plan that this session needs.
std::vector<PatchRecord> PatchesOf(const PatchPlan& plan) {
  std::vector<PatchRecord> patches;
  patches.reserve(plan.patches.size());
  for (const size_t index : plan.patches)
    patches.push_back(plan.state.patches[index]);
  return patches;
}

}  // namespace

AttachedProcess::AttachedProcess(RemoteProcess process, PlacedClient client)
    : process_(std::move(process)),
      seed_(client.seed),
      counts_already_(client.counts_already),
      memory_(std::move(client.memory)),
      hooks_(&process_, client.base, client.seed, PatchesOf(client.plan)) {
  report_.allocators = std::move(client.plan.allocators);
  report_.unpatched = std::move(client.plan.unpatched);
  report_.one_thread_stopped_ns = client.stopped_ns;
}

AttachedProcess::~AttachedProcess() {
  if (hooks_.are_in())
    static_cast<void>(TakeHooksOut());
  process_.Unlock();
}

Result<std::unique_ptr<AttachedProcess>> AttachedProcess::Place(pid_t pid,
                                                                const Options& options,
                                                                AllocatorFinder* finder,
                                                                TracedThread* held) {
  HPD_TRY_ASSIGN(RemoteProcess process, RemoteProcess::Open(pid));
  if (!process.Lock())
    return LostRace(pid, "another heap_profile is attaching to it");
  Result<PlacedClient> client = PlaceClient(process, options, finder, held);
  if (client.ok())
    return std::unique_ptr<AttachedProcess>(
        new AttachedProcess(std::move(process), std::move(client).value()));
  // What is missing then is the process.
  const bool is_there = process.IsSameImage();
  process.Unlock();
  return is_there ? client.status()
                  : LostRace(pid, "it has just ended or become another program");
}

Status AttachedProcess::PutHooksInHeld(const TracedThread& thread) {
  const uint64_t started = MonotonicNs();
  if (!process_.IsSameImage())
    return LostRace(pid(), "it has just become another program");
  const Result<bool> is_in = hooks_.PutIn({thread});
  process_.Unlock();  // from here on it is seen that we are there
  report_.threads = 1;
  report_.attach_stopped_ns = MonotonicNs() - started;
  if (!is_in.ok())
    return is_in.status();
  return is_in.value() ? Status() : DoesNotLeave(pid());
}

Status AttachedProcess::PutHooksIn() {
  if (counts_already_) {
    const bool is_told = hooks_.TakeOver();
    process_.Unlock();
    return is_told ? Status() : LostRace(pid(), "it has just ended");
  }
  for (int i = 0; i == 0 || (i < kPatchTries && MayWait()); ++i, PauseBeforeRetry()) {
    HPD_TRY_ASSIGN(const StoppedProcess stopped, StoppedProcess::Stop(process_));
    if (!process_.IsSameImage())
      return LostRace(pid(), "it has just become another program");
    HPD_TRY_ASSIGN(const bool is_in, hooks_.PutIn(stopped.threads()));
    report_.threads = stopped.threads().size();
    report_.attach_stopped_ns = MonotonicNs() - stopped.stopped_at_ns();
    if (!is_in)
      continue;
    process_.Unlock();  // from here on it is seen that we are there
    return {};
  }
  return DoesNotLeave(pid());
}

Status AttachedProcess::TakeBrokenHooksOut() {
  if (!hooks_.are_in() || !process_.IsSameImage())
    return {};
  HPD_TRY_ASSIGN(const StoppedProcess stopped, StoppedProcess::Stop(process_));
  if (process_.IsSameImage())
    hooks_.TakeBrokenOut();
  return {};
}

std::vector<std::string> AttachedProcess::AllocatorsSince(AllocatorFinder* finder) const {
  std::vector<std::string> since;
  // Those that could not be hooked then have been told.
  if (!hooks_.are_in() || report_.allocators.empty() || !report_.unpatched.empty() ||
      !process_.IsSameImage())
    return since;
  for (const Allocator& allocator : finder->Find(process_, process_.Maps()).allocators)
    since.push_back(allocator.path);
  for (const std::string& hooked : report_.allocators) {
    const auto same = std::ranges::find(since, hooked);  // there may be more of one path
    if (same != since.end())
      since.erase(same);
  }
  return since;
}

// No thread can be inside of a jump; those that were inside of what it replaces have been
// led into the copy, which stays.
Status AttachedProcess::TakeHooksOut() {
  if (!hooks_.are_in())
    return {};
  Status status;
  for (int i = 0; i == 0 || (i < kPatchTries && MayWait()); ++i, PauseBeforeRetry()) {
    if (!process_.IsSameImage()) {
      hooks_.Forget();
      return {};
    }
    Result<StoppedProcess> stopped = StoppedProcess::Stop(process_);
    if (!stopped.ok()) {
      status = stopped.status();
      if (status.code() != StatusCode::kUnavailable)
        continue;  // it is ending
      break;
    }
    if (!process_.IsSameImage())
      continue;
    status = hooks_.TakeOut();
    report_.detach_stopped_ns = MonotonicNs() - stopped.value().stopped_at_ns();
    return status;
  }
  hooks_.Leave();  // the next session takes them out
  return status;
}

}  // namespace heapprofd
