// What a recording looks like while it runs: the history behind the summary's sparkline,
// and the text of the status line.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/record/heap_curve.h"
#include "engine/target/target.h"

namespace heapprofd {

class LiveView {
 public:
  // Gets a line of text every half second.
  using ShowStatus = std::function<void(const std::string& text)>;

  // `show`: nullptr when nobody looks.
  explicit LiveView(ShowStatus show);

  // Call it often; it looks only when something is due.
  void Update(const std::vector<Target*>& targets);

  // Until Update has something to do, at most `max_ms`.
  int MillisecondsToNext(int max_ms) const;

  // Time since the recording began.
  double seconds() const;

  // By target.
  using Histories = std::map<const Target*, std::vector<CurvePoint>>;

  const Histories& histories() const { return histories_; }

 private:
  void Observe(const std::vector<Target*>& targets);
  void ThinOut();
  std::string StatusText(const std::vector<Target*>& targets) const;

  ShowStatus show_;
  uint64_t started_ns_;
  uint64_t observed_ns_ = 0;
  uint64_t shown_ns_ = 0;
  uint64_t observe_every_ns_;
  Histories histories_;
};

}  // namespace heapprofd
