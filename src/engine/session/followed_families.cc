#include "engine/session/followed_families.h"

#include <algorithm>
#include <string>
#include <utility>

#include "attach/apart.h"
#include "engine/process_info.h"
#include "engine/session/process_family.h"
#include "engine/target_rules.h"

namespace heapprofd {
namespace {

constexpr uint64_t kFollowNs = 20'000'000;     // for forks we look at most so often
constexpr uint64_t kExecLookNs = 200'000'000;  // for executed programs
constexpr uint64_t kExecNs = 1'000'000'000;    // for a new program to have its libraries

}  // namespace

void FollowedFamilies::Follow() {
  const uint64_t now = context_->clock().last_ns();
  if (IsRunningApart() || now < followed_ns_ + kFollowNs)
    return;
  followed_ns_ = now;
  const bool looks_for_exec = now >= exec_looked_ns_ + kExecLookNs;
  if (looks_for_exec)
    exec_looked_ns_ = now;
  for (const pid_t pid : FindForked(looks_for_exec))
    FollowChildren(pid);
  for (const auto& [pid, until] : std::map<pid_t, uint64_t>(execed_))
    FollowExec(pid);
}

// Which have forked since the last look; those that have become other programs
// end.
std::vector<pid_t> FollowedFamilies::FindForked(bool looks_for_exec) {
  std::vector<pid_t> forked;
  for (LiveTarget& live : context_->targets().live()) {
    if (live.attached == nullptr || live.has_ended())
      continue;
    const uint32_t forks = live.target->recorder().memory().client().ring.forks.load(
        std::memory_order_relaxed);
    if (std::exchange(live.forks_seen, forks) != forks &&
        context_->config().follow_children)
      forked.push_back(live.target->pid());
    if (looks_for_exec && live.attached->HasBecomeAnother()) {
      execed_[live.target->pid()] = context_->clock().last_ns() + kExecNs;
      SessionTargets::NoteEnd(live, TargetEnd::kExeced);
    }
  }
  return forked;
}

bool FollowedFamilies::IsGiven(pid_t pid) const {
  const std::vector<pid_t>& pids = context_->config().targets.pids;
  return context_->config().targets.names.empty() ||
         std::find(pids.begin(), pids.end(), pid) != pids.end();
}

// Who waits for names does not want what those of the names start: `ancestor`
// is a target whose children are looked at.
bool FollowedFamilies::IsFollowed(pid_t pid, pid_t ancestor) const {
  return IsGiven(ancestor) || IsNamedBy(context_->config().targets, DescribeProcess(pid));
}

// Each child is tried once, of however many processes attached to it is a
// descendant.
void FollowedFamilies::FollowChildren(pid_t pid) {
  if (children_seen_.size() > 2 * kMaxFamily)
    children_seen_.clear();
  for (const auto& [child, start] : FamilyOf(pid, context_->meanwhile())) {
    if (!children_seen_.emplace(child, start, IsGiven(pid)).second ||
        context_->targets().IsProfiling(child) || !IsFollowed(child, pid))
      continue;
    const Status status = attached_->PutClientIn(child);
    if (!status.ok() && status.code() == StatusCode::kUnavailable)
      context_->problems().Note(status.message());
  }
}

// The process has become another program, which may not have its libraries yet.
// Those that are caught at their start come by themselves.
void FollowedFamilies::FollowExec(pid_t pid) {
  const bool is_over = context_->clock().last_ns() >= execed_[pid];
  const Status status = context_->targets().IsProfiling(pid) || starts_->is_catching() ||
                                !IsFollowed(pid, pid)
                            ? Status()
                            : attached_->PutClientIn(pid);
  if (!status.ok() && status.code() != StatusCode::kNotFound && !is_over)
    return;
  execed_.erase(pid);
  if (!status.ok() && status.code() != StatusCode::kNotFound)
    context_->problems().Note(status.message());
}

}  // namespace heapprofd
