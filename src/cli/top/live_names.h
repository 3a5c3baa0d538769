// Names for the functions of a recording that goes on, as they come: a part of them in
// each turn, so that nobody who presses a key waits for all.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "cli/inspect/restored_profile.h"
#include "symbolize/symbolize_profile.h"

namespace heapprofd {

class LiveNames {
 public:
  // `options.cancel_fd` readable: the user has something else to ask for.
  explicit LiveNames(SymbolizeOptions options) : options_(std::move(options)) {}

  // Looks for names of at most a thousand frames that have none and were not looked for
  // yet. True: some have been found.
  bool Find(const std::vector<std::unique_ptr<RestoredProfile>>& processes);

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
};

}  // namespace heapprofd
