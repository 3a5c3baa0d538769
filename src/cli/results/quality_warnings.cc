#include "cli/results/quality_warnings.h"

#include <algorithm>

#include "cli/results/process_name.h"
#include "cli/results/quality_words.h"
#include "cli/results/unnamed_advice.h"
#include "profile/limits.h"

namespace heapprofd {
namespace {

ProfileFaults FaultsOf(const TargetProfile& profile, uint64_t block_timeout_us) {
  const HeapDump& dump = profile.heaps[0];
  return {.quality = profile.quality,
          .from_startup = profile.from_startup,
          .has_waited = profile.client_fault == ClientFault::kHitTimeout,
          .block_timeout_us = block_timeout_us,
          .sampling_interval = dump.sampling_interval,
          .original_sampling_interval = dump.original_sampling_interval,
          .late_files = profile.late_files};
}

// True when a process that never called malloc has more memory than any start needs.
bool HoldsMemoryOfItsOwn(const TargetProfile& profile) {
  constexpr uint64_t kMuchKib = 4096;
  const bool has_calls =
      std::any_of(profile.heaps.begin(), profile.heaps.end(),
                  [](const HeapDump& dump) { return dump.exact_alloc_calls > 0; });
  return !has_calls && profile.memory.anonymous_kib >= kMuchKib;
}

}  // namespace

std::vector<std::pair<std::string, uint64_t>> MissingCounts(const Quality& quality) {
  std::vector<std::pair<std::string, uint64_t>> counts = {
      {"lost_records", quality.lost_records},
      {"corrupt_records", quality.corrupt_records},
      {"refused_samples", quality.refused_samples},
      {"threads_without_slot", quality.threads_without_slot},
      {"reports_without_slot", quality.reports_without_slot}};
  std::erase_if(counts, [](const auto& figure) { return figure.second == 0; });
  return counts;
}

bool IsIncomplete(const Quality& quality) {
  return !MissingCounts(quality).empty();
}

std::vector<std::string> QualityWarnings(const ProcessResult& process,
                                         uint64_t block_timeout_us) {
  std::vector<std::string> warnings;
  const TargetProfile& profile = *process.profile;
  if (profile.heaps.empty())
    return warnings;
  if (!profile.from_startup && profile.quality.unsampled_calls == 0)
    warnings.push_back(
        AttachedWords(LiveTotal(profile.heaps[0]).bytes, process.resident_kib));
  for (std::string& words : WordsOf(FaultsOf(profile, block_timeout_us)))
    warnings.push_back(std::move(words));
  if (std::optional<std::string> advice = UnnamedAdvice(process))
    warnings.push_back(std::move(*advice));
  return warnings;
}

namespace {

// A child that was born with the hooks of its parent, which was attached to, counts in that
// one's memory until it takes a sample: it is among the forked children there.
bool CountsInItsParent(const TargetProfile& profile,
                       const std::vector<ProcessResult>& processes) {
  return profile.from_startup &&
         std::ranges::any_of(processes, [&profile](const ProcessResult& other) {
           return other.profile->process.pid == profile.process.parent_pid &&
                  other.profile->forked.count > 0;
         });
}

void AddSilent(const std::vector<ProcessResult>& processes,
               std::vector<std::string>* warnings) {
  constexpr size_t kMaxNames = 3;
  std::string names;
  size_t count = 0;
  bool may_be_static = false;  // seen from their first allocation on, and none came
  for (size_t i = 1; i < processes.size(); ++i) {
    const TargetProfile& profile = *processes[i].profile;
    if (!HoldsMemoryOfItsOwn(profile) || CountsInItsParent(profile, processes))
      continue;
    may_be_static |= profile.from_startup;
    if (++count <= kMaxNames)
      names += (names.empty() ? "" : ", ") + ProcessName(profile);
  }
  if (count > 0)
    warnings->push_back(
        CountedExactly(count, " process has", " processes have") +
        " memory, but called no allocation function that can be seen: " + names +
        (count == 1 ? "; it" : "; they") + " allocated nothing meanwhile, or " +
        (count == 1 ? "keeps pools of its own" : "keep pools of their own") +
        (!may_be_static ? ""
         : count == 1   ? ", or has an allocator linked statically"
                        : ", or have an allocator linked statically"));
}

}  // namespace

std::vector<std::string> WarningsOfOthers(const std::vector<ProcessResult>& processes) {
  std::vector<std::string> warnings;
  uint64_t lost = 0;
  uint64_t damaged = 0;
  size_t attached = 0;
  uint64_t uncounted = 0;  // forked children of all processes
  size_t unsampled_children = 0;
  Quality unsampled;
  for (const ProcessResult& process : processes)
    uncounted += process.profile->forked.uncounted;
  for (size_t i = 1; i < processes.size(); ++i) {
    const TargetProfile& profile = *processes[i].profile;
    const bool is_counted = profile.quality.unsampled_calls > 0;
    attached += profile.from_startup || is_counted ? 0u : 1u;
    unsampled_children += is_counted ? 1u : 0u;
    unsampled.unsampled_calls += profile.quality.unsampled_calls;
    unsampled.unsampled_bytes += profile.quality.unsampled_bytes;
    lost += profile.quality.lost_records;
    damaged += profile.quality.corrupt_records;
  }
  if (attached > 0)
    warnings.push_back(
        CountedExactly(attached, " other process was", " other processes were") +
        " attached to while running: what was allocated before is not "
        "seen");
  if (unsampled_children > 0)
    warnings.push_back(
        UnsampledWords(CountedExactly(unsampled_children, " other forked child",
                                      " other forked children"),
                       unsampled));
  if (uncounted > 0)
    warnings.push_back(
        CountedExactly(uncounted, " forked child was", " forked children were") +
        " not even counted: more than 4096 were "
        "there at once");
  if (lost > 0)
    warnings.push_back(CountedExactly(lost, " record", " records") +
                       " of the other processes " + (lost == 1 ? "is" : "are") +
                       " missing; raise --shmem-size "
                       "or --interval");
  if (damaged > 0)
    warnings.push_back(CountedExactly(damaged, " record", " records") +
                       " of the other processes " + (damaged == 1 ? "was" : "were") +
                       " damaged and left out");
  AddSilent(processes, &warnings);
  return warnings;
}

}  // namespace heapprofd
