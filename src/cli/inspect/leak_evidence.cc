#include "cli/inspect/leak_evidence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "profile/limits.h"
#include "report/report_data.h"

namespace heapprofd {
namespace {

using Stack = std::vector<StackFunction>;

struct Sums {
  std::vector<double> series;
  CallsiteTotals last;
  BytesByAge ages{};  // at the last dump
};

class StackSums {
 public:
  StackSums(const TargetProfile& profile, size_t dumps)
      : names_(profile), dumps_(dumps) {}

  void Add(const HeapDump& heap, size_t dump) {
    for (const auto& [callsite, totals] : heap.callsites)
      Find(callsite)->series[dump] += totals.live().bytes;
    if (dump + 1 == dumps_)
      AddLast(heap);
  }

  bool tells_ages() const { return tells_ages_; }

  const std::map<Stack, Sums>& sums() const { return sums_; }

 private:
  void AddLast(const HeapDump& heap) {
    for (const auto& [callsite, totals] : heap.callsites) {
      Sums& sums = *Find(callsite);
      sums.last.allocated += totals.allocated;
      sums.last.freed += totals.freed;
    }
    for (const ShapeRow& row : heap.shapes) {
      if (row.kind != ShapeKind::kAge)
        continue;
      const size_t age = std::min<size_t>(row.log2, BytesByAge().size() - 1);
      Find(row.callsite)->ages[age] += row.estimate.bytes;
      tells_ages_ = true;
    }
  }

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
  bool tells_ages_ = false;
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
  return std::tuple(stack.evidence, grows ? -stack.growth() : 0.0, -stack.settled());
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
    held += stack.settled();
  return held;
}

double YoungerBytes(const BytesByAge& ages, double ns) {
  double bytes = 0;
  for (size_t i = 0; i < ages.size(); ++i) {
    const double low = i == 0 ? 0 : std::ldexp(1.0, static_cast<int>(i));
    const double width = std::ldexp(1.0, static_cast<int>(i) + 1) - low;
    bytes += ages[i] * std::clamp((ns - low) / width, 0.0, 1.0);
  }
  return bytes;
}

// Both what is live and what is of each age are whole numbers in a file.
double RoundingOf(const BytesByAge& ages) {
  return 0.5 * static_cast<double>(1 + std::ranges::count_if(
                                           ages, [](double bytes) { return bytes > 0; }));
}

std::optional<double> MedianAge(const BytesByAge& ages) {
  const double half = std::accumulate(ages.begin(), ages.end(), 0.0) / 2;
  double below = 0;
  for (size_t i = 0; i < ages.size(); ++i) {
    if (ages[i] > 0 && below + ages[i] >= half)
      return std::ldexp(1 + (half - below) / ages[i], static_cast<int>(i));
    below += ages[i];
  }
  return std::nullopt;
}

Leaks FindLeaks(OpenedFile& file, const ChosenHeap& heap, LeakFilter* filter) {
  RestoredProfile* const process = ProcessOf(file, heap);
  const std::string name = heap.heap->heap_name;
  const std::vector<uint32_t> dumps = DumpsOf(file, *process, name);
  StackSums sums(process->profile(), dumps.size());
  uint64_t end_ns = 0;
  for (size_t i = 0; i < dumps.size(); ++i) {
    const HeapDump dump = process->Restore(dumps[i]);
    sums.Add(dump, i);
    end_ns = dump.end_ns;
  }
  const uint64_t begin_ns = std::min(process->profile().process.start_ns, end_ns);
  const double newest_ns =
      static_cast<double>(end_ns - begin_ns) * filter->newest_percent / 100;
  Leaks leaks;
  leaks.dumps = dumps.size();
  leaks.tells_ages = sums.tells_ages();
  double allocated = 0;
  for (const auto& [stack, sum] : sums.sums()) {
    leaks.live += sum.last.live().bytes;
    allocated += sum.last.allocated.bytes;
  }
  leaks.tells_frees = allocated > leaks.live;
  Suppressor suppressor(&filter->suppressions);
  for (const auto& [stack, sum] : sums.sums()) {
    SuspectStack suspect;
    suspect.live = sum.series.back();
    if (suspect.live <= 0)
      continue;
    suspect.allocated = sum.last.allocated.bytes;
    suspect.evidence = EvidenceOf(sum.series, suspect.allocated, leaks.tells_frees);
    if (suspect.evidence == Evidence::kNone ||
        suppressor.Suppress(stack, suspect.live) != nullptr)
      continue;
    suspect.too_new = std::min(suspect.live, YoungerBytes(sum.ages, newest_ns));
    leaks.left_out += suspect.too_new;
    if (suspect.settled() <= RoundingOf(sum.ages)) {
      leaks.left_out += suspect.settled();
      continue;
    }
    suspect.median_age_ns = MedianAge(sum.ages);
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
