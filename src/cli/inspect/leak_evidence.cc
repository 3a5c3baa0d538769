#include "cli/inspect/leak_evidence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "profile/limits.h"
#include "report/report_data.h"

namespace heapprofd {
namespace {

using Stack = std::vector<StackFunction>;

struct Sums {
  std::vector<double> series;
  CallsiteTotals last;
};

class StackSums {
 public:
  StackSums(const TargetProfile& profile, size_t dumps)
      : names_(profile), dumps_(dumps) {}

  void Add(const HeapDump& heap, size_t dump) {
    for (const auto& [callsite, totals] : heap.callsites) {
      Sums& sums = *Find(callsite);
      sums.series[dump] += totals.live().bytes;
      if (dump + 1 < dumps_)
        continue;
      sums.last.allocated += totals.allocated;
      sums.last.freed += totals.freed;
    }
  }

  const std::map<Stack, Sums>& sums() const { return sums_; }

 private:
  Sums* Find(CallsiteId callsite) {
    const auto [known, is_new] = by_callsite_.try_emplace(callsite, nullptr);
    if (is_new) {
      known->second = &sums_[names_.HolderStack(callsite)];
      known->second->series.resize(dumps_, 0);
    }
    return known->second;
  }

  StackNames names_;
  size_t dumps_;
  std::map<Stack, Sums> sums_;
  std::map<CallsiteId, Sums*> by_callsite_;
};

// Those that the report has of this heap, in order.
std::vector<uint32_t> DumpsOf(const OpenedFile& file,
                              const RestoredProfile& process,
                              const std::string& heap_name) {
  std::vector<uint32_t> dumps = file.DumpsOf(process.upid(), heap_name);
  const uint32_t last = dumps.back();
  dumps.pop_back();
  dumps = ChosenDumps(file.trace(), dumps, ReportOptions().max_earlier_dumps);
  dumps.push_back(last);
  std::sort(dumps.begin(), dumps.end());
  return dumps;
}

RestoredProfile* ProcessOf(OpenedFile& file, const ChosenHeap& heap) {
  for (const auto& process : file.processes) {
    if (&process->profile() == heap.profile)
      return process.get();
  }
  return nullptr;
}

auto RankOf(const SuspectStack& stack) {
  const bool grows = stack.evidence < Evidence::kNothingFreed;
  return std::tuple(stack.evidence, grows ? -stack.growth() : 0.0, -stack.live);
}

}  // namespace

const char* EvidenceName(Evidence evidence) {
  switch (evidence) {
    case Evidence::kGrowsNothingFreed:
      return "grows, nothing freed";
    case Evidence::kGrows:
      return "grows";
    case Evidence::kNothingFreed:
      return "nothing freed";
    case Evidence::kNone:
      break;
  }
  return "";
}

Evidence EvidenceOf(const std::vector<double>& series,
                    double allocated,
                    bool tells_frees) {
  size_t rises = 0;
  bool falls = false;
  for (size_t i = 1; i < series.size(); ++i) {
    falls |= series[i] < series[i - 1];
    rises += series[i] > series[i - 1] ? 1u : 0u;
  }
  const bool grows = series.size() >= kLeastDumps && rises >= 2 && !falls;
  const bool is_kept = tells_frees && series.back() >= allocated;
  if (grows)
    return is_kept ? Evidence::kGrowsNothingFreed : Evidence::kGrows;
  return is_kept ? Evidence::kNothingFreed : Evidence::kNone;
}

double Leaks::held() const {
  double held = 0;
  for (const SuspectStack& stack : stacks)
    held += stack.live;
  return held;
}

Leaks FindLeaks(OpenedFile& file, const ChosenHeap& heap) {
  RestoredProfile* const process = ProcessOf(file, heap);
  const std::string name = heap.heap->heap_name;
  const std::vector<uint32_t> dumps = DumpsOf(file, *process, name);
  StackSums sums(process->profile(), dumps.size());
  for (size_t i = 0; i < dumps.size(); ++i)
    sums.Add(process->Restore(dumps[i]), i);
  Leaks leaks;
  leaks.dumps = dumps.size();
  double allocated = 0;
  for (const auto& [stack, sum] : sums.sums()) {
    leaks.live += sum.last.live().bytes;
    allocated += sum.last.allocated.bytes;
  }
  leaks.tells_frees = allocated > leaks.live;
  for (const auto& [stack, sum] : sums.sums()) {
    SuspectStack suspect;
    suspect.live = sum.series.back();
    if (suspect.live <= 0)
      continue;
    suspect.allocated = sum.last.allocated.bytes;
    suspect.evidence = EvidenceOf(sum.series, suspect.allocated, leaks.tells_frees);
    if (suspect.evidence == Evidence::kNone)
      continue;
    suspect.stack = stack;
    suspect.series = sum.series;
    suspect.error =
        kNormalQuantile * std::sqrt(std::max(0.0, sum.last.live().bytes_variance));
    leaks.stacks.push_back(std::move(suspect));
  }
  std::stable_sort(leaks.stacks.begin(), leaks.stacks.end(),
                   [](const auto& a, const auto& b) { return RankOf(a) < RankOf(b); });
  return leaks;
}

}  // namespace heapprofd
