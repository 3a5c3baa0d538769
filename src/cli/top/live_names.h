// Names for the functions of a recording that goes on, as they come: a part of them in
// each turn, so that nobody who presses a key waits for all.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cli/top/live_trace.h"
#include "symbolize/symbolize_profile.h"

namespace heapprofd {

class LiveNames {
 public:
  // `options.cancel_fd` readable: the user has something else to ask for.
  explicit LiveNames(SymbolizeOptions options) : options_(std::move(options)) {}

  // Looks for names of at most a thousand frames that have none and were not looked for
  // yet.
  void Find(const LiveProcesses& processes);

  // There are frames that were not looked for yet.
  bool HasMore(const LiveProcesses& processes) const;

  // There are names that nobody was told of yet. Rows are grouped by them anew, which
  // costs as much as another look: the first ones are told of at once, then those of a
  // second, then the last.
  bool TakeNews(const LiveProcesses& processes, uint64_t now_ns);

 private:
  struct Part {
    RestoredProfile* process;
    TargetProfile frames;            // with the process's mappings
    std::vector<FrameId> originals;  // their ids in the process
  };

  // Of frames from the first one on that was not asked for.
  static Part NextPart(RestoredProfile& process, size_t first, size_t room);

  SymbolizeOptions options_;
  std::map<const RestoredProfile*, size_t> asked_;  // frames before this one
  bool has_news_ = false;
  uint64_t told_ns_ = 0;
};

}  // namespace heapprofd
