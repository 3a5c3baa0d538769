#include "engine/session/drain_loop.h"

#include <algorithm>
#include <climits>
#include <set>
#include <utility>

#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr size_t kRecordsPerTurn =
    20'000;  // of one target, before the others get their turn
// Each wait ends in a timer interrupt, which the kernel likes to take on the
// target's processor, and each look at a ring takes cache lines away from its
// writers: so the waits are as long as the rings' space allows. While code is
// new they are short, for until its rules are published each sample in it
// copies its stack.
constexpr int kMinWaitMs = 1;
constexpr int kMaxWaitMs = 10;
constexpr double kLowFill = 1.0 / 64;  // of the ring, when a wait ends
constexpr double kHighFill = 1.0 / 8;

size_t CountUsers(const std::vector<LiveTarget>& targets) {
  std::set<uid_t> users;
  for (const LiveTarget& live : targets)
    users.insert(live.target->user());
  return users.size();
}

}  // namespace

// Every target is told that we move: its program waits only as long as it sees
// that.
int DrainLoop::Turn(std::vector<LiveTarget>& targets, uint64_t turn_end_ns) {
  clock_->Update();
  turn_.Begin(clock_->last_ns(), turn_end_ns, CountUsers(targets));
  Seen seen;
  const size_t count = targets.size();
  const size_t first = std::exchange(first_, 0);
  for (size_t i = 0; i < count; ++i) {
    const size_t index = (first + i) % count;
    const Target& target = *targets[index].target;
    if (!target.is_recording())
      continue;
    const RingDrain& ring = target.recorder().ring();
    seen.fill = std::max(seen.fill, ring.fill());
    const uint64_t position = ring.position();
    const Quality& quality = target.profile().quality;
    const uint64_t copies = quality.copied_samples;
    if (DrainOne(targets[index])) {
      first_ = seen.is_pending ? first_ : index;
      seen.is_pending = true;
    }
    seen.is_learning |= quality.copied_samples != copies;
    seen.did_read |= ring.position() != position;
  }
  return WaitAfter(seen);
}

int DrainLoop::WaitAfter(const Seen& seen) {
  if (seen.is_pending)
    return 0;
  if (seen.is_learning || seen.fill > kHighFill)
    wait_ms_ = kMinWaitMs;
  else if (seen.fill < kLowFill)
    wait_ms_ = std::min(wait_ms_ + 1, kMaxWaitMs);
  if (seen.did_read)
    NoteNews();
  return clock_->last_ns() < busy_until_ns_ ? wait_ms_ : INT_MAX;
}

// True: there is more.
bool DrainLoop::DrainOne(LiveTarget& live) {
  Target& target = *live.target;
  TargetRecorder& recorder = target.recorder();
  const RingDrain& ring = recorder.ring();
  const bool has_ended = live.has_ended();
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

}  // namespace heapprofd
