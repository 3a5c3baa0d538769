#include "cli/inspect/leak_evidence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "cli/inspect/call_sites.h"
#include "cli/inspect/holder_functions.h"
#include "profile/limits.h"
#include "report/report_data.h"

namespace heapprofd {
namespace {

// What is summed together: a stack of functions, by its number in HolderFunctions, or of
// it one call site.
using Key = std::pair<uint32_t, uint32_t>;

constexpr uint32_t kWholeStack = kNoId;

struct Sums {
  std::vector<double> series;
  CallsiteTotals last;
  std::unique_ptr<BytesByAge> ages;  // at the last dump; nullptr: nothing is live
  std::string place;                 // of a call site
};

class StackSums {
 public:
  // `split`: only these stacks, each call site for itself; nullptr: whole stacks.
  StackSums(const TargetProfile& profile,
            HolderFunctions* functions,
            size_t dumps,
            const std::set<uint32_t>* split)
      : functions_(*functions), sites_(profile), dumps_(dumps), split_(split) {}

  void Add(const HeapDump& heap, size_t dump) {
    for (const auto& [callsite, totals] : heap.callsites) {
      if (Sums* const sums = Find(callsite))
        sums->series[dump] += totals.live().bytes;
    }
    if (dump + 1 == dumps_)
      AddLast(heap);
  }

  bool tells_ages() const { return tells_ages_; }

  const std::map<Key, Sums>& sums() const { return sums_; }

 private:
  void AddLast(const HeapDump& heap) {
    for (const auto& [callsite, totals] : heap.callsites) {
      if (Sums* const sums = Find(callsite)) {
        sums->last.allocated += totals.allocated;
        sums->last.freed += totals.freed;
      }
    }
    for (const ShapeRow& row : heap.shapes) {
      const bool is_age = row.kind == ShapeKind::kAge && row.callsite != kNoId;
      Sums* const sums = is_age ? Find(row.callsite) : nullptr;
      if (sums == nullptr)
        continue;
      const size_t age = std::min<size_t>(row.log2, BytesByAge().size() - 1);
      if (sums->ages == nullptr)
        sums->ages = std::make_unique<BytesByAge>();
      (*sums->ages)[age] += row.estimate.bytes;
      tells_ages_ = true;
    }
  }

  // nullptr: it is not asked for.
  Sums* Find(CallsiteId callsite) {
    const auto [known, is_new] = by_callsite_.try_emplace(callsite, nullptr);
    if (is_new)
      known->second = Make(callsite);
    return known->second;
  }

  Sums* Make(CallsiteId callsite) {
    const std::vector<StackNames::Position> positions = functions_.PositionsOf(callsite);
    const uint32_t stack = functions_.StackAt(positions);
    if (split_ != nullptr && !split_->contains(stack))
      return nullptr;
    const uint32_t site = split_ == nullptr ? kWholeStack : sites_.SiteOf(positions);
    Sums& sums = sums_[{stack, site}];
    sums.series.resize(dumps_, 0);
    if (split_ != nullptr && sums.place.empty() && !positions.empty())
      sums.place = sites_.PlaceOf(positions[0]);
    return &sums;
  }

  HolderFunctions& functions_;
  CallSites sites_;
  size_t dumps_;
  const std::set<uint32_t>* split_;
  std::map<Key, Sums> sums_;
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

namespace {

bool IsKept(const Sums& sums) {
  const Estimate live = sums.last.live();
  return live.bytes > 0 && live.bytes >= sums.last.allocated.bytes;
}

// Half of the 95 % interval of what is live.
double LiveError(const Sums& sums) {
  return kNormalQuantile * std::sqrt(std::max(0.0, sums.last.live().bytes_variance));
}

class LeakFinder {
 public:
  LeakFinder(OpenedFile& file, const ChosenHeap& heap, LeakFilter* filter)
      : process_(*ProcessOf(file, heap)),
        dumps_(DumpsOf(file, process_, heap.heap->heap_name)),
        last_(process_.Restore(dumps_.back())),
        functions_(process_.profile()),
        suppressor_(&filter->suppressions) {
    const uint64_t begin_ns = std::min(process_.profile().process.start_ns, last_.end_ns);
    newest_ns_ =
        static_cast<double>(last_.end_ns - begin_ns) * filter->newest_percent / 100;
    leaks_.dumps = dumps_.size();
  }

  Leaks Find() {
    StackSums whole(process_.profile(), &functions_, dumps_.size(), nullptr);
    AddEarlier(&whole);
    whole.Add(last_, dumps_.size() - 1);
    AddTotals(whole);
    for (const auto& [key, sums] : whole.sums()) {
      const Evidence evidence =
          EvidenceOf(sums.series, sums.last.allocated.bytes, leaks_.tells_frees);
      if (evidence != Evidence::kNone)
        AddSuspect(key.first, sums, evidence);
      else if (sums.series.back() > 0)
        others_.insert(key.first);
    }
    AddCallSites();
    std::stable_sort(leaks_.stacks.begin(), leaks_.stacks.end(),
                     [this](const auto& a, const auto& b) { return IsBefore(a, b); });
    leaks_.functions = functions_.functions();
    return std::move(leaks_);
  }

 private:
  // Equal ones in the order of their names, whatever file they are from.
  bool IsBefore(const SuspectStack& a, const SuspectStack& b) const {
    const auto [rank_a, rank_b] = std::pair(RankOf(a), RankOf(b));
    if (rank_a != rank_b)
      return rank_a < rank_b;
    const auto function = [this](uint32_t row) -> const StackFunction& {
      return functions_.functions()[row];
    };
    return std::ranges::lexicographical_compare(a.stack, b.stack, {}, function, function);
  }

  void AddEarlier(StackSums* sums) {
    for (size_t i = 0; i + 1 < dumps_.size(); ++i)
      sums->Add(process_.Restore(dumps_[i]), i);
  }

  void AddTotals(const StackSums& whole) {
    leaks_.tells_ages = whole.tells_ages();
    double allocated = 0;
    bool is_partial = false;  // what was allocated is, as in files of other tools
    for (const auto& [key, sums] : whole.sums()) {
      leaks_.live += sums.last.live().bytes;
      allocated += sums.last.allocated.bytes;
      is_partial |= sums.last.live().bytes > sums.last.allocated.bytes;
    }
    leaks_.tells_frees = allocated > leaks_.live && !is_partial;
  }

  // Of stacks without evidence: what one line frees hides what another one keeps. Of few
  // samples it is none.
  void AddCallSites() {
    if (!leaks_.tells_frees)
      return;
    StackSums sites(process_.profile(), &functions_, dumps_.size(), &others_);
    sites.Add(last_, dumps_.size() - 1);
    if (std::ranges::none_of(sites.sums(),
                             [](const auto& row) { return IsKept(row.second); }))
      return;
    AddEarlier(&sites);
    for (const auto& [key, sums] : sites.sums()) {
      if (IsKept(sums) && sums.last.live().bytes > LiveError(sums))
        AddSuspect(key.first, sums,
                   EvidenceOf(sums.series, sums.last.allocated.bytes, true));
    }
  }

  void AddSuspect(uint32_t stack, const Sums& sums, Evidence evidence) {
    const std::span<const uint32_t> rows = functions_.RowsOf(stack);
    SuspectStack suspect;
    suspect.live = sums.series.back();
    if (suspect.live <= 0 ||
        suppressor_.Suppress(rows, functions_.functions(), suspect.live) != nullptr)
      return;
    const BytesByAge ages = sums.ages != nullptr ? *sums.ages : BytesByAge();
    suspect.allocated = sums.last.allocated.bytes;
    suspect.evidence = evidence;
    suspect.too_new = std::min(suspect.live, YoungerBytes(ages, newest_ns_));
    leaks_.left_out += suspect.too_new;
    if (suspect.settled() <= RoundingOf(ages)) {
      leaks_.left_out += suspect.settled();
      return;
    }
    suspect.median_age_ns = MedianAge(ages);
    suspect.stack.assign(rows.begin(), rows.end());
    suspect.place = sums.place;
    suspect.series = sums.series;
    suspect.error = LiveError(sums);
    leaks_.stacks.push_back(std::move(suspect));
  }

  RestoredProfile& process_;
  std::vector<uint32_t> dumps_;
  HeapDump last_;
  HolderFunctions functions_;
  Suppressor suppressor_;
  double newest_ns_ = 0;
  std::set<uint32_t> others_;  // with live bytes and no evidence
  Leaks leaks_;
};

}  // namespace

Leaks FindLeaks(OpenedFile& file, const ChosenHeap& heap, LeakFilter* filter) {
  return LeakFinder(file, heap, filter).Find();
}

}  // namespace heapprofd
