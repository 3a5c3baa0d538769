// Who holds memory now, what that has changed since the last look, and who allocates how
// much per second: the rows of the live view, by function.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/results/top_list.h"
#include "cli/top/live_trace.h"

namespace heapprofd {

struct LiveFigures {
  double live = 0;                        // bytes
  double change = 0;                      // of that, since the look before
  std::optional<double> per_second = {};  // bytes allocated; nullopt: not known yet
  double objects = 0;                     // live

  LiveFigures& operator+=(const LiveFigures& more);
};

using ThreadKey = std::pair<uint32_t, uint32_t>;  // upid and utid

struct LiveRow {
  std::string name;  // of who holds it; not yet fit to be shown
  LiveFigures figures;
  std::optional<ThreadKey> thread = {};  // of a function: none
  // The largest stack of a function.
  const TargetProfile* profile = nullptr;
  CallsiteId callsite = kNoId;

  // Of the same function or thread, in another look maybe. Threads may share their name.
  bool IsSame(const LiveRow& other) const {
    return thread == other.thread && (thread || name == other.name);
  }
};

// Who holds it: functions as in the summary, or the threads that have allocated it.
enum class LiveKind : uint8_t { kFunctions, kThreads };

enum class LiveOrder : uint8_t { kLive, kChange, kPerSecond, kObjects };

class LiveRows {
 public:
  // Another look. `now_ns`: the time of the dumps. Of the first one everything is a
  // change and its pace unknown.
  void Look(const LiveProcesses& processes, uint64_t now_ns);

  // Functions have other names from the next look on, or from GroupByFunction(), which is
  // the same look once more.
  void ForgetNames();
  void GroupByFunction();

  // What goes with Look().
  void LookAtThreads(const std::vector<LiveThread>& threads);

  // The first is the one that leads in `order`. Those whose name does not have `filter`
  // in it, whatever the case, are left out.
  std::vector<LiveRow> Sorted(LiveKind kind,
                              LiveOrder order,
                              const std::string& filter) const;

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
    uint64_t end_ns = 0;    // of the dump
    bool has_pace = false;  // there was a look before it
    Stacks stacks;
  };

  static Stacks LookAt(const TargetProfile& profile,
                       const HeapDump& heap,
                       const Stacks& before,
                       double seconds);
  const std::string& HolderOf(const TargetProfile& profile, CallsiteId callsite);

  std::map<const TargetProfile*, StackNames> names_;
  std::map<std::pair<const TargetProfile*, CallsiteId>, std::string> holders_;
  std::map<Place, SeenHeap> heaps_;
  std::map<std::string, LiveRow> rows_;  // of functions

  struct SeenThread {
    LiveThread thread;
    LiveRow row;
  };

  std::map<ThreadKey, SeenThread> threads_;
  LiveFigures total_;
  uint64_t looked_ns_ = 0;
};

}  // namespace heapprofd
