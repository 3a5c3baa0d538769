#include "cli/top/live_heap_view.h"

#include "base/clock.h"

namespace heapprofd {

Result<LiveHeapView::News> LiveHeapView::Look() {
  HPD_TRY_ASSIGN(const bool has_more, trace_.Update());
  // Dumps of several processes come one after the other, and are looked at together: when
  // no more come, or have come for too long.
  constexpr uint64_t kLongestNs = 2'000'000'000;
  const uint64_t now_ns = MonotonicNs();
  News news{.has_dumps = has_more_ && (!has_more || now_ns - looked_ns_ > kLongestNs)};
  has_more_ = has_more;
  names_.Find(processes());
  news.has_names = names_.TakeNews(processes(), now_ns);
  if (news.has_names)
    rows_.ForgetNames();
  if (news.has_dumps) {
    rows_.Look(processes(), trace_.latest_ns());
    rows_.LookAtThreads(trace_.Threads());
    looked_ns_ = now_ns;
  } else if (news.has_names) {
    rows_.GroupByFunction();
  }
  return news;
}

void LiveHeapView::LookForLastTime() {
  constexpr int kTurns = 50;
  const Result<bool> has_more = trace_.Update();
  if (has_more_ || (has_more.ok() && has_more.value()))
    rows_.Look(processes(), trace_.latest_ns());
  for (int turn = 0; turn < kTurns && names_.HasMore(processes()); ++turn)
    names_.Find(processes());
  rows_.ForgetNames();
  rows_.GroupByFunction();
}

}  // namespace heapprofd
