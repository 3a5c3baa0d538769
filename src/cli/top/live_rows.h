// Who holds memory now, what that has changed since the last look, and who allocates how
// much per second: the rows of the live view, by function.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/inspect/restored_profile.h"
#include "cli/results/top_list.h"

namespace heapprofd {

struct LiveFigures {
  double live = 0;        // bytes
  double change = 0;      // of that, since the look before
  double per_second = 0;  // bytes allocated
  double objects = 0;     // live

  LiveFigures& operator+=(const LiveFigures& more);
};

struct LiveRow {
  std::string function;  // who holds it, as in the summary; not yet fit to be shown
  LiveFigures figures;
  // Its largest stack.
  const TargetProfile* profile = nullptr;
  CallsiteId callsite = kNoId;
};

enum class LiveOrder : uint8_t { kLive, kChange, kPerSecond, kObjects };

class LiveRows {
 public:
  // Another look. `now_ns`: the time of the dumps. Of the first one everything is a
  // change and its pace unknown.
  void Look(const std::vector<std::unique_ptr<RestoredProfile>>& processes,
            uint64_t now_ns);

  // The same look, when functions have got their names.
  void Rename();

  // The first is the one that leads in `order`. Those whose function does not have
  // `filter` in it, whatever the case, are left out.
  std::vector<LiveRow> Sorted(LiveOrder order, const std::string& filter) const;

  const LiveFigures& total() const { return total_; }

 private:
  struct Place {
    uint32_t upid;
    std::string heap;

    auto operator<=>(const Place&) const = default;
  };

  struct Stack {
    const TargetProfile* profile = nullptr;
    double allocated = 0;  // bytes, since the recording's start
    LiveFigures figures;
  };

  using Stacks = std::map<CallsiteId, Stack>;

  // Heaps have dumps at times of their own.
  struct SeenHeap {
    uint64_t end_ns = 0;  // of the dump
    Stacks stacks;
  };

  static Stacks LookAt(const TargetProfile& profile,
                       const HeapDump& heap,
                       const Stacks& before,
                       double seconds);
  void GroupByFunction();
  const std::string& HolderOf(const TargetProfile& profile, CallsiteId callsite);

  std::map<const TargetProfile*, StackNames> names_;
  std::map<std::pair<const TargetProfile*, CallsiteId>, std::string> holders_;
  std::map<Place, SeenHeap> heaps_;
  std::map<std::string, LiveRow> rows_;
  LiveFigures total_;
  uint64_t looked_ns_ = 0;
};

}  // namespace heapprofd
