#include "cli/inspect/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "profile/limits.h"

namespace heapprofd {
namespace {

constexpr size_t kMostHeapNames = 8;  // in one line

// Other tools' files have no names of heaps, and what Perfetto's call unknown may be any.
bool NamesHeap(const ChosenHeap& chosen) {
  return chosen.profile->process.pid != 0 && chosen.heap->heap_name != "unknown";
}

std::set<std::string> NamesOf(const OpenedFile& file) {
  std::set<std::string> names;
  for (const auto& process : file.processes) {
    for (const HeapDump& heap : process->profile().heaps)
      names.insert(heap.heap_name);
  }
  return names;
}

double SizeOf(const HeapDump& heap) {
  return std::max(heap.peak_total.bytes, LiveTotal(heap).bytes);
}

bool IsOf(const RestoredProfile& process, const ProcessChoice& choice) {
  const auto pid = static_cast<uint64_t>(process.profile().process.pid);
  return (!choice.pid || pid == *choice.pid) &&
         (!choice.upid || process.upid() == *choice.upid);
}

// Of the heaps that `is_wanted`; of equal ones the first.
template <typename IsWanted>
ChosenHeap LargestOfThem(const OpenedFile& file,
                         const ProcessChoice& choice,
                         IsWanted is_wanted) {
  ChosenHeap largest{.file = &file};
  for (const auto& process : file.processes) {
    if (!IsOf(*process, choice))
      continue;
    for (const HeapDump& heap : process->profile().heaps) {
      if (!is_wanted(heap) ||
          (largest.heap != nullptr && SizeOf(heap) <= SizeOf(*largest.heap)))
        continue;
      largest.profile = &process->profile();
      largest.heap = &heap;
    }
  }
  return largest;
}

struct Held {
  std::string label;
  Estimate a;
  Estimate b;
};

using HeldByFunction = std::map<StackFunction, Held>;

void AddHeld(const ChosenHeap& chosen, Estimate Held::*side, HeldByFunction* held) {
  StackNames names(*chosen.profile);
  for (const auto& [callsite, totals] : chosen.heap->callsites) {
    const StackFunction holder = names.Holder(callsite);
    if (holder.label.empty())
      continue;
    Held& function = (*held)[holder];
    function.label = holder.label;
    function.*side += totals.live();
  }
}

// Half of an interval. What has no sample may have been missed, unless the other side shows
// that its blocks are too large for that; Perfetto's counts, which are of samples, do not,
// and have the errors of small blocks.
double ErrorOf(const Estimate& held, const Estimate& other, uint64_t interval) {
  if (held.bytes != 0)
    return kNormalQuantile * std::sqrt(std::max(0.0, held.bytes_variance));
  const double weight = static_cast<double>(interval);
  const bool is_certain = other.count > 0 && other.bytes / other.count >= weight &&
                          other.bytes_variance <= other.bytes * weight / 2;
  return is_certain ? 0 : UpperLimit({}, interval);
}

std::vector<FunctionChange> ChangesOf(const HeldByFunction& held,
                                      uint64_t interval_a,
                                      uint64_t interval_b) {
  std::vector<FunctionChange> changes;
  for (const auto& [function, sums] : held) {
    if (sums.a.bytes == sums.b.bytes)
      continue;
    StackFunction named = function;
    named.label = sums.label;
    changes.push_back({.function = std::move(named),
                       .a = sums.a.bytes,
                       .b = sums.b.bytes,
                       .error = std::hypot(ErrorOf(sums.a, sums.b, interval_a),
                                           ErrorOf(sums.b, sums.a, interval_b))});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const auto& x, const auto& y) {
    return std::abs(x.b - x.a) > std::abs(y.b - y.a);
  });
  return changes;
}

}  // namespace

ChosenHeap LargestHeap(const OpenedFile& file,
                       const std::string& heap_name,
                       const ProcessChoice& choice) {
  const ChosenHeap named = LargestOfThem(
      file, choice, [&](const HeapDump& heap) { return heap.heap_name == heap_name; });
  return named.heap != nullptr
             ? named
             : LargestOfThem(file, choice, [](const HeapDump&) { return true; });
}

std::optional<HeapPair> ComparableHeaps(const OpenedFile& a, const OpenedFile& b) {
  const std::set<std::string> names = NamesOf(b);
  const ChosenHeap common = LargestOfThem(
      a, {}, [&](const HeapDump& heap) { return names.contains(heap.heap_name); });
  if (common.heap != nullptr)
    return HeapPair{common, LargestHeap(b, common.heap->heap_name)};
  const HeapPair largest{LargestHeap(a, ""), LargestHeap(b, "")};
  return NamesHeap(largest.a) && NamesHeap(largest.b) ? std::nullopt
                                                      : std::optional(largest);
}

std::string HeapNamesOf(const OpenedFile& file) {
  std::string text;
  size_t listed = 0;
  for (const std::string& name : NamesOf(file)) {
    if (listed++ == kMostHeapNames)
      return text + ", ...";
    text += (text.empty() ? "" : ", ") + Printable(name);
  }
  return text;
}

bool FigureChange::IsNoise() const {
  return change.bytes != 0 && change.low <= 0 && change.high >= 0;
}

bool FunctionChange::IsNoise() const {
  return std::abs(b - a) <= error;
}

Comparison Compare(const ChosenHeap& a, const ChosenHeap& b) {
  Comparison comparison;
  const std::vector<HeapFigure> in_a = FiguresOf({&a, 1});
  const std::vector<HeapFigure> in_b = FiguresOf({&b, 1});
  for (size_t i = 0; i < in_a.size(); ++i)
    comparison.figures.push_back(
        {in_a[i], in_b[i], Difference(in_b[i].value, in_a[i].value)});
  comparison.tells_functions = a.heap->told.live_size && b.heap->told.live_size;
  HeldByFunction held;
  if (comparison.tells_functions) {
    AddHeld(a, &Held::a, &held);
    AddHeld(b, &Held::b, &held);
  }
  comparison.functions =
      ChangesOf(held, a.heap->sampling_interval, b.heap->sampling_interval);
  comparison.error_is_known =
      a.heap->sampling_interval > 0 && b.heap->sampling_interval > 0;
  return comparison;
}

}  // namespace heapprofd
