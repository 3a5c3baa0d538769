#include "engine/session/left_children.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace heapprofd {
namespace {

// When the looks at children of all sessions of this process have been made up
// for.
uint64_t g_looks_paid_ns = 0;

// Processes that have ended and have children that count: a descriptor each, of
// those that we may have.
size_t MaxTargets() {
  constexpr rlim_t kMost = 1024;
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::min(limit.rlim_cur / 8, kMost) : 0;
}

}  // namespace

void NameUnprofiled(const Target& target,
                    const UnprofiledCounts& all,
                    const UnprofiledCounts& named,
                    ProgramWatch* programs) {
  const std::string& name = target.profile().process.cmdline[0];
  for (size_t i = 0; i < all.size(); ++i)
    programs->Count(name, kUnprofiledChildren[i].reason,
                    all[i] - std::min(all[i], named[i]));
}

// When its children are left no more.
void LeftChildren::NameMore(const Left& left) const {
  NameUnprofiled(*left.target, left.target->children().unprofiled(), left.named,
                 programs_);
}

std::string LeftChildren::Add(Target* target, const UnprofiledCounts& named) {
  targets_.push_back({target, named});
  if (targets_.size() <= MaxTargets())
    return "";
  targets_.front().target->children().Leave();  // without a look: those are paced
  NameMore(targets_.front());
  targets_.pop_front();
  if (std::exchange(has_left_some_, true))
    return "";
  return "cannot count all that forked children may go on to allocate: more "
         "than " +
         std::to_string(targets_.size()) +
         " processes have ended before their children were known to have; "
         "record fewer "
         "programs at once, or raise the limit of open files (ulimit -n, up to "
         "8192)";
}

// For a moment, and not again for ten times as long, for all sessions together:
// what the kernel has to look at for it is theirs. Where none has ended there
// is no hurry.
void LeftChildren::Look() {
  constexpr uint64_t kTurnNs = 1'000'000;
  constexpr uint64_t kPauseNs = 20'000'000;
  const uint64_t begin_ns = MonotonicNs();
  const size_t count = targets_.size();
  if (count == 0 || begin_ns < look_ns_)
    return;
  for (size_t left = count; left > 0 && MonotonicNs() < begin_ns + kTurnNs; --left) {
    const Left looked_at = targets_.front();
    targets_.pop_front();
    looked_at.target->children().LookAfter();
    if (looked_at.target->children().are_left())
      targets_.push_back(looked_at);
    else
      NameMore(looked_at);
  }
  const uint64_t end_ns = MonotonicNs();
  g_looks_paid_ns = std::max(g_looks_paid_ns, end_ns) + 10 * (end_ns - begin_ns);
  look_ns_ = targets_.size() < count ? g_looks_paid_ns
                                     : std::max(g_looks_paid_ns, end_ns + kPauseNs);
}

void LeftChildren::LeaveAll() {
  for (const Left& left : targets_) {
    left.target->children().Leave();
    NameMore(left);
  }
  targets_.clear();
}

}  // namespace heapprofd
