// What a recording looks like while it runs: the history behind the summary's sparkline,
// and the status line on a terminal.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/target.h"

namespace heapprofd {

struct History {
  std::vector<double> live_bytes;  // evenly spaced, at most kMaxHistory
};

class LiveView {
 public:
  explicit LiveView(bool show_status);

  // Call it often; it looks only when something is due.
  void Update(const std::vector<Target*>& targets);

  // Time since the recording began.
  double seconds() const;

  // Removes the status line.
  void Clear();

  // By target.
  const std::map<const Target*, History>& histories() const { return histories_; }

 private:
  void Observe(const std::vector<Target*>& targets);
  void ThinOut();
  void ShowStatus(const std::vector<Target*>& targets);

  bool show_status_;
  uint64_t started_ns_;
  uint64_t observed_ns_ = 0;
  uint64_t shown_ns_ = 0;
  uint64_t observe_every_ns_;
  std::map<const Target*, History> histories_;
};

}  // namespace heapprofd
