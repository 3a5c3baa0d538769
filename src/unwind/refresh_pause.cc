#include "unwind/refresh_pause.h"

#include <algorithm>

namespace heapprofd {
namespace {

constexpr uint64_t kRefreshPauseNs = 5'000'000;
constexpr uint64_t kPauseFactor = 10;  // of what a refresh has taken
constexpr int64_t kMaxCreditNs = 20'000'000;

}  // namespace

void RefreshPause::Note(uint64_t begin_ns, uint64_t end_ns, bool was_vain) {
  const uint64_t took_ns = end_ns - begin_ns;
  credit_ns_ = std::min(
      kMaxCreditNs,
      credit_ns_ + static_cast<int64_t>((begin_ns - credited_ns_) / kPauseFactor));
  const auto cost_ns = static_cast<int64_t>(took_ns);
  const int64_t from_first_ns = was_vain ? 0 : std::min(first_credit_ns_, cost_ns);
  first_credit_ns_ -= from_first_ns;
  credit_ns_ -= cost_ns - from_first_ns;
  credited_ns_ = end_ns;
  uint64_t pause_ns =
      credit_ns_ < 0 ? kPauseFactor * static_cast<uint64_t>(-credit_ns_) : 0;
  if (was_vain)
    pause_ns = std::max({pause_ns, kRefreshPauseNs, kPauseFactor * took_ns});
  until_ns_ = end_ns + pause_ns;
}

}  // namespace heapprofd
