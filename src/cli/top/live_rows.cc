#include "cli/top/live_rows.h"

#include <strings.h>

#include <algorithm>
#include <utility>

#include "cli/results/top_list.h"

namespace heapprofd {
namespace {

double KeyOf(const LiveFigures& figures, LiveOrder order) {
  switch (order) {
    case LiveOrder::kLive:
      break;
    case LiveOrder::kChange:
      return figures.change;
    case LiveOrder::kPerSecond:
      return figures.per_second.value_or(0);
    case LiveOrder::kObjects:
      return figures.objects;
  }
  return figures.live;
}

bool Matches(const std::string& text, const std::string& filter) {
  const auto is_same = [](char a, char b) { return strncasecmp(&a, &b, 1) == 0; };
  return std::search(text.begin(), text.end(), filter.begin(), filter.end(), is_same) !=
         text.end();
}

}  // namespace

LiveFigures& LiveFigures::operator+=(const LiveFigures& more) {
  live += more.live;
  change += more.change;
  if (more.per_second)
    per_second = per_second.value_or(0) + *more.per_second;
  objects += more.objects;
  return *this;
}

LiveRows::Stacks LiveRows::LookAt(const TargetProfile& profile,
                                  const HeapDump& heap,
                                  const Stacks& before,
                                  double seconds) {
  Stacks stacks;
  for (const auto& [callsite, totals] : heap.callsites) {
    const Estimate live = totals.live();
    Stack& stack = stacks[callsite];
    stack.profile = &profile;
    stack.allocated = totals.allocated.bytes;
    stack.figures = {.live = live.bytes, .change = live.bytes, .objects = live.count};
    double allocated = totals.allocated.bytes;
    if (const auto last = before.find(callsite); last != before.end()) {
      stack.figures.change -= last->second.figures.live;
      allocated -= last->second.allocated;
    }
    if (seconds > 0)
      stack.figures.per_second = std::max(0.0, allocated) / seconds;
  }
  return stacks;
}

void LiveRows::Look(const LiveProcesses& processes, uint64_t now_ns) {
  std::map<Place, SeenHeap> heaps;
  for (RestoredProfile* process : processes) {
    for (const HeapDump& heap : process->profile().heaps) {
      const Place place{process->upid(), heap.heap_name};
      SeenHeap& seen = heaps[place];
      SeenHeap& before = heaps_[place];
      if (before.end_ns == heap.end_ns && before.end_ns != 0) {  // its dump is late
        seen = std::move(before);
        continue;
      }
      const uint64_t since_ns = before.end_ns != 0 ? before.end_ns : looked_ns_;
      const double seconds = since_ns != 0 && heap.end_ns > since_ns
                                 ? static_cast<double>(heap.end_ns - since_ns) / 1e9
                                 : 0;
      seen.end_ns = heap.end_ns;
      seen.has_pace = seconds > 0;
      seen.stacks = LookAt(process->profile(), heap, before.stacks, seconds);
    }
  }
  looked_ns_ = now_ns;
  heaps_ = std::move(heaps);
  GroupByFunction();
}

void LiveRows::ForgetNames() {
  holders_.clear();
  names_.clear();
}

const std::string& LiveRows::HolderOf(const TargetProfile& profile, CallsiteId callsite) {
  const auto [entry, is_new] = holders_.try_emplace({&profile, callsite});
  if (is_new) {
    StackNames& names = names_.try_emplace(&profile, profile).first->second;
    entry->second = names.Holder(callsite).label;
    if (entry->second.empty())
      entry->second = "[unknown]";
  }
  return entry->second;
}

void LiveRows::GroupByFunction() {
  rows_.clear();
  total_ = {};
  std::map<std::string, double> largest;  // live bytes of the stack that a row shows
  for (const auto& [place, heap] : heaps_) {
    if (heap.has_pace && !total_.per_second)
      total_.per_second = 0;
    for (const auto& [callsite, stack] : heap.stacks) {
      const std::string& name = HolderOf(*stack.profile, callsite);
      LiveRow& row = rows_[name];
      row.figures += stack.figures;
      total_ += stack.figures;
      double& most = largest[name];
      if (row.profile == nullptr || stack.figures.live > most) {
        row.name = name;
        row.profile = stack.profile;
        row.callsite = callsite;
        most = stack.figures.live;
      }
    }
  }
}

void LiveRows::LookAtThreads(const std::vector<LiveThread>& threads) {
  std::map<ThreadKey, SeenThread> seen;
  for (const LiveThread& thread : threads) {
    const ThreadKey key(thread.upid, thread.utid);
    SeenThread& now = seen[key];
    SeenThread& before = threads_[key];
    if (before.thread.end_ns == thread.end_ns) {  // its dump is late
      now = std::move(before);
      continue;
    }
    LiveFigures figures = {.live = thread.live,
                           .change = thread.live - before.thread.live,
                           .objects = thread.objects};
    if (before.thread.end_ns != 0 && before.thread.end_ns < thread.end_ns)
      figures.per_second =
          std::max(0.0, thread.allocated - before.thread.allocated) /
          (static_cast<double>(thread.end_ns - before.thread.end_ns) / 1e9);
    now = {.thread = thread,
           .row = {.name = thread.name, .figures = figures, .thread = key}};
  }
  threads_ = std::move(seen);
}

std::vector<LiveRow> LiveRows::Sorted(LiveKind kind,
                                      LiveOrder order,
                                      const std::string& filter) const {
  std::vector<LiveRow> rows;
  const auto add = [&](const LiveRow& row) {
    if (Matches(row.name, filter))
      rows.push_back(row);
  };
  if (kind == LiveKind::kThreads) {
    for (const auto& [id, seen] : threads_)
      add(seen.row);
  } else {
    for (const auto& [name, row] : rows_)
      add(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [order](const LiveRow& a, const LiveRow& b) {
    return KeyOf(a.figures, order) > KeyOf(b.figures, order);
  });
  return rows;
}

}  // namespace heapprofd
