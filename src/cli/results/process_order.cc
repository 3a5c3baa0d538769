#include "cli/results/process_order.h"

#include <algorithm>
#include <numeric>

#include "cli/results/process_name.h"
#include "profile/limits.h"

namespace heapprofd {
namespace {

double SizeOf(const TargetProfile& profile) {
  double size = 0;
  for (const HeapDump& dump : profile.heaps)
    size += dump.peak_total.bytes > 0 ? dump.peak_total.bytes : LiveTotal(dump).bytes;
  return size;
}

}  // namespace

bool HasSamples(const TargetProfile& profile) {
  return std::any_of(profile.heaps.begin(), profile.heaps.end(),
                     [](const HeapDump& dump) { return !dump.callsites.empty(); });
}

// The estimate of a peak can be 0 where samples were taken.
std::pair<bool, double> RankOf(const TargetProfile& profile) {
  return {HasSamples(profile), SizeOf(profile)};
}

std::vector<size_t> OrderOf(const std::vector<const TargetProfile*>& profiles,
                            pid_t program) {
  constexpr double kWrapperShare = 0.25;
  std::vector<std::pair<bool, double>> ranks;
  ranks.reserve(profiles.size());
  for (const TargetProfile* profile : profiles)
    ranks.push_back(RankOf(*profile));
  std::vector<size_t> order(profiles.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return ranks[a] > ranks[b]; });
  const auto own = std::find_if(order.begin(), order.end(), [&](size_t i) {
    return profiles[i]->process.pid == program;
  });
  if (own == order.end())
    return order;
  const auto& [has_samples, size] = ranks[order[0]];
  if (ranks[*own].first >= has_samples && ranks[*own].second >= kWrapperShare * size)
    std::rotate(order.begin(), own, own + 1);
  return order;
}

std::string LargerThanFirst(const std::vector<ProcessResult>& ordered) {
  return ordered.size() > 1 && SizeOf(*ordered[1].profile) > SizeOf(*ordered[0].profile)
             ? ProcessName(*ordered[1].profile)
             : "";
}

std::string ProgramBehindFirst(const std::vector<ProcessResult>& ordered, pid_t program) {
  for (const ProcessResult& process : ordered) {
    if (process.profile->process.pid == program)
      return &process == ordered.data() ? "" : ProcessName(*process.profile);
  }
  return "";
}

}  // namespace heapprofd
