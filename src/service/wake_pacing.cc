#include "service/wake_pacing.h"

#include <algorithm>

#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kMinPauseNs = 50'000'000;
constexpr uint64_t kMaxPauseNs = 1'000'000'000;
constexpr uint64_t kHalvedNs = 1'000'000'000;
constexpr uint64_t kForgottenNs = 10 * kHalvedNs;  // nothing is left of the longest pause

uint64_t PauseNs(uint64_t pause_ns, uint64_t since_ns) {
  const uint64_t halvings = std::min<uint64_t>(since_ns / kHalvedNs, 63);
  return std::max(pause_ns >> halvings, kMinPauseNs);
}

uint64_t LeftNs(uint64_t pause_ns, uint64_t since_ns) {
  return pause_ns > since_ns ? pause_ns - since_ns : 0;
}

}  // namespace

bool WakePacing::IsWanted(uid_t user) const {
  const auto found = users_.find(user);
  return found != users_.end() && found->second.is_wanted;
}

// Root harms nobody whom he could not harm otherwise.
uint64_t WakePacing::WaitNs(uid_t user, const Account& account, uint64_t now_ns) const {
  const uint64_t since_ns = now_ns - account.last_ns;
  const uint64_t own_ns =
      user == 0 ? 0 : LeftNs(PauseNs(account.pause_ns, since_ns), since_ns);
  return std::max(own_ns, LeftNs(kMinPauseNs, now_ns - last_ns_));
}

bool WakePacing::TakeDue(uint64_t now_ns) {
  bool is_due = false;
  for (auto& [user, account] : users_) {
    if (!account.is_wanted || WaitNs(user, account, now_ns) > 0)
      continue;
    is_due = true;
    const uint64_t since_ns = now_ns - account.last_ns;
    account.pause_ns =
        since_ns >= kForgottenNs
            ? kMinPauseNs
            : std::min(2 * PauseNs(account.pause_ns, since_ns), kMaxPauseNs);
    account.last_ns = now_ns;
  }
  if (!is_due)
    return false;
  last_ns_ = now_ns;
  for (auto& [user, account] : users_)
    account.is_wanted = false;
  std::erase_if(users_, [now_ns](const auto& one) {
    return now_ns - one.second.last_ns >= kForgottenNs;
  });
  return true;
}

int WakePacing::MillisecondsToNext(uint64_t now_ns) const {
  int next_ms = -1;
  for (const auto& [user, account] : users_) {
    if (!account.is_wanted)
      continue;
    const auto wait_ms =
        static_cast<int>((WaitNs(user, account, now_ns) + kNsPerMs - 1) / kNsPerMs);
    next_ms = next_ms < 0 ? wait_ms : std::min(next_ms, wait_ms);
  }
  return next_ms;
}

}  // namespace heapprofd
