#include "engine/session/followed_families.h"

#include <algorithm>
#include <string>
#include <utility>

#include "attach/apart.h"
#include "base/clock.h"
#include "engine/process_info.h"
#include "engine/target/forked_children.h"
#include "engine/target_rules.h"

namespace heapprofd {
namespace {

constexpr uint64_t kFollowNs = 20'000'000;     // for forks we look at most so often
constexpr uint64_t kExecLookNs = 200'000'000;  // for executed programs
// A look at all children of a process with ten thousand threads takes long: the next one
// is that many times later, which is 5 % of a processor at most.
constexpr uint64_t kLookPause = 20;
constexpr uint64_t kChangingNs =
    1'000'000'000;  // for a new program to have its libraries

// What was found wrong with a process that is about to end is no property of its program.
bool HasProgram(pid_t pid) {
  return !DescribeProcess(pid).executable.empty();
}

}  // namespace

// Where names decide, those of a name are wanted whenever they began.
std::vector<pid_t> FollowedFamilies::LeaveDescendantsOf(pid_t pid) {
  std::vector<pid_t> left;
  if (!context_->config().follow_children || !IsGiven(pid))
    return left;
  for (const auto& [child, start] : FamilyOf(pid, context_->meanwhile())) {
    left_alone_.emplace(child, start);
    left.push_back(child);
  }
  return left;
}

void FollowedFamilies::Follow() {
  const uint64_t now = context_->clock().last_ns();
  if (IsRunningApart() || now < followed_ns_ + kFollowNs)
    return;
  followed_ns_ = now;
  const bool looks_at_all = now >= next_look_at_all_ns_;
  looked_for_ns_ = 0;
  for (const pid_t pid : FindParents(looks_at_all))
    FollowChildren(pid);
  if (looks_at_all)
    next_look_at_all_ns_ = now + std::max(kExecLookNs, kLookPause * looked_for_ns_);
  if (now >= exec_looked_ns_ + kExecLookNs)
    NoteExecs();
  if (context_->config().follow_children && now >= next_orphan_look_ns_) {
    looked_for_ns_ = 0;
    FollowOrphans();
    next_orphan_look_ns_ = now + kLookPause * looked_for_ns_;
  }
  for (const auto& [pid, until] : std::map<pid_t, uint64_t>(changing_))
    FollowChanging(pid);
}

// Whose children are to be looked at: those that have forked since the last look, and
// now and then all whose programs are wanted whatever their names.
std::vector<pid_t> FollowedFamilies::FindParents(bool looks_at_all) {
  std::vector<pid_t> parents;
  for (LiveTarget& live : context_->targets().live()) {
    if (live.attached == nullptr || live.has_ended())
      continue;
    const pid_t pid = live.target->pid();
    const uint32_t forks = live.target->recorder().memory().client().ring.forks.load(
        std::memory_order_relaxed);
    const bool has_forked = std::exchange(live.forks_seen, forks) != forks;
    if (context_->config().follow_children &&
        (has_forked || (looks_at_all && IsGiven(pid))))
      parents.push_back(pid);
  }
  return parents;
}

// Those that have become other programs end.
void FollowedFamilies::NoteExecs() {
  exec_looked_ns_ = context_->clock().last_ns();
  for (LiveTarget& live : context_->targets().live()) {
    if (live.attached == nullptr || live.has_ended() ||
        !live.attached->HasBecomeAnother())
      continue;
    changing_[live.target->pid()] = exec_looked_ns_ + kChangingNs;
    SessionTargets::NoteEnd(live, TargetEnd::kExeced);
  }
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
// descendant; one that is about to execute a program is tried again.
void FollowedFamilies::FollowChildren(pid_t pid) {
  if (children_seen_.size() > 2 * kMaxFamily)
    children_seen_.clear();
  if (orphans_seen_.size() > 2 * kMaxFamily)
    orphans_seen_.clear();
  const uint64_t began_ns = MonotonicNs();
  const std::vector<Relative> family = FamilyOf(pid, context_->meanwhile());
  looked_for_ns_ += MonotonicNs() - began_ns;
  for (const Relative& child : family)
    FollowChild(child, pid, Found::kInFamily);
}

// A child claims its slot a moment after it has said that it begins to count: the look
// after that sees one owner more. What stands in the slots is the target's choice, so
// nobody is attached to for that who has not our hooks.
void FollowedFamilies::FollowOrphans() {
  std::vector<std::pair<pid_t, std::vector<pid_t>>> owners;  // by the ancestor's id
  for (const auto& [target, client] : context_->targets().ForkMemories()) {
    const uint64_t begun = client->ring.counted_children.load(std::memory_order_relaxed);
    const uint64_t counting = begun << 32 | CountOwnedForkSlots(*client);
    if (counting != 0 && std::exchange(counting_seen_[target], counting) != counting)
      owners.emplace_back(target->pid(), OwnersOfForkSlots(*client));
  }
  for (const auto& [ancestor, threads] : owners) {
    const uint64_t began_ns = MonotonicNs();
    const std::vector<Relative> children = ProcessesOf(threads, context_->meanwhile());
    looked_for_ns_ += MonotonicNs() - began_ns;
    for (const Relative& child : children)
      FollowChild(child, ancestor, Found::kByItsCounts);
  }
}

// Who is known by its counts may by now be another program, and in its parent's list
// as such.
bool FollowedFamilies::IsNew(const Relative& child, pid_t ancestor, Found found) {
  const Identity identity = {child.pid, child.start};
  const std::pair<Identity, bool> seen = {identity, IsGiven(ancestor)};
  return found == Found::kInFamily
             ? children_seen_.insert(seen).second
             : !children_seen_.contains(seen) && orphans_seen_.insert(identity).second;
}

void FollowedFamilies::FollowChild(const Relative& child, pid_t ancestor, Found found) {
  if (left_alone_.contains({child.pid, child.start}) || !IsNew(child, ancestor, found) ||
      context_->targets().IsProfiling(child.pid) || !IsFollowed(child.pid, ancestor))
    return;
  const bool is_orphan = found == Found::kByItsCounts;
  if (is_orphan && !attached_->IsSettled(child.pid)) {
    orphans_seen_.erase({child.pid, child.start});
    counting_seen_.clear();  // it is looked for again
    return;
  }
  const Status status = attached_->PutClientIn(child.pid, is_orphan);
  if (status.code() == StatusCode::kTryAgain && !is_orphan)
    changing_[child.pid] = context_->clock().last_ns() + kChangingNs;
  else if (status.code() == StatusCode::kUnavailable && HasProgram(child.pid))
    context_->problems().Note(status.message());
}

// The process has become another program, which may not have its libraries yet.
// Those that are caught at their start come by themselves.
void FollowedFamilies::FollowChanging(pid_t pid) {
  const bool is_over = context_->clock().last_ns() >= changing_[pid];
  const Status status = context_->targets().IsProfiling(pid) || starts_->is_catching() ||
                                !IsFollowed(pid, pid)
                            ? Status()
                            : attached_->PutClientIn(pid);
  if (!status.ok() && status.code() != StatusCode::kNotFound && !is_over)
    return;
  changing_.erase(pid);
  if (!status.ok() && status.code() != StatusCode::kNotFound)
    context_->problems().Note(status.message());
}

}  // namespace heapprofd
