#include "cli/record/live_view.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/format.h"
#include "cli/text_layout.h"

namespace heapprofd {
namespace {

constexpr uint64_t kShowNs = 500'000'000;
constexpr uint64_t kFirstObserveNs = 5'000'000;
constexpr size_t kMaxPoints = 400;

}  // namespace

LiveView::LiveView(ShowStatus show)
    : show_(std::move(show)),
      started_ns_(MonotonicNs()),
      observe_every_ns_(kFirstObserveNs) {}

void LiveView::Update(const std::vector<Target*>& targets) {
  const uint64_t now = MonotonicNs();
  // Many processes are looked at less often, so that looking costs the same.
  if (now - observed_ns_ >= observe_every_ns_ * std::max<size_t>(1, targets.size())) {
    observed_ns_ = now;
    Observe(targets);
  }
  if (show_ && now - shown_ns_ >= kShowNs) {
    shown_ns_ = now;
    show_(StatusText(targets));
  }
}

void LiveView::Observe(const std::vector<Target*>& targets) {
  bool is_full = false;
  for (Target* target : targets) {
    if (!target->is_recording())
      continue;
    std::vector<CurvePoint>& history = histories_[target];
    const double live = target->recorder().LiveBytes();
    history.push_back({.time_ns = observed_ns_, .live_bytes = live});
    target->recorder().observer().Look(live, observed_ns_);
    is_full |= history.size() >= kMaxPoints;
  }
  if (is_full)
    ThinOut();
}

// Every second point goes and the pace halves, so that the history always spans the whole
// run.
void LiveView::ThinOut() {
  observe_every_ns_ *= 2;
  for (auto& [target, history] : histories_) {
    for (size_t i = 0; 2 * i < history.size(); ++i)
      history[i] = history[2 * i];
    history.resize((history.size() + 1) / 2);
  }
}

std::string LiveView::StatusText(const std::vector<Target*>& targets) const {
  double live = 0;
  uint64_t samples = 0;
  uint64_t lost = 0;
  double fill = 0;
  for (const Target* target : targets) {
    samples += target->profile().quality.samples;
    lost += target->lost_records();
    if (!target->is_recording())
      continue;
    live += target->recorder().LiveBytes();
    fill = std::max(fill, target->recorder().ring().fill());
  }
  std::array<char, 128> text{};
  snprintf(text.data(), text.size(),
           "* %s  live %s  %s  ring %.0f%%  %llu dropped  Ctrl-C to stop",
           ClockText(seconds()).c_str(), FormatBytes(live).c_str(),
           FormatCounted(static_cast<double>(samples), "sample", "samples").c_str(),
           fill * 100, static_cast<unsigned long long>(lost));
  return text.data();
}

int LiveView::MillisecondsToNext(int max_ms) const {
  const uint64_t passed_ns = MonotonicNs() - observed_ns_;
  const uint64_t rest_ns = observe_every_ns_ - std::min(observe_every_ns_, passed_ns);
  return static_cast<int>(
      std::min<uint64_t>(static_cast<uint64_t>(max_ms), rest_ns / 1'000'000 + 1));
}

double LiveView::seconds() const {
  return static_cast<double>(MonotonicNs() - started_ns_) / 1e9;
}

}  // namespace heapprofd
