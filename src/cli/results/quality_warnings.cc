#include "cli/results/quality_warnings.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "cli/results/process_name.h"
#include "cli/results/unnamed_advice.h"
#include "profile/limits.h"

namespace heapprofd {
namespace {

constexpr double kWorthAWarning = 0.01;  // of the stacks

std::string Share(uint64_t part, uint64_t whole) {
  return FormatShare(static_cast<double>(part), static_cast<double>(whole));
}

bool IsMuch(uint64_t stacks, const Quality& quality) {
  return static_cast<double>(stacks) >
         static_cast<double>(quality.samples) * kWorthAWarning;
}

std::string Counted(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + (count == 1 ? one : many);
}

// A wait without a bound ends only when the profiler stands still (docs/design/
// ring-wait.md).
std::string LossWarning(const TargetProfile& profile, uint64_t block_timeout_us) {
  const Quality& quality = profile.quality;
  const bool has_waited = profile.client_fault == ClientFault::kHitTimeout;
  const bool is_bounded = block_timeout_us != 0 || !profile.from_startup;
  const std::string advice =
      !has_waited  ? "; raise --shmem-size or --interval"
      : is_bounded ? "; raise --shmem-size, --interval or --block-client-timeout"
                   : "; do not stop the profiler, leave it some processor time, or raise "
                     "--shmem-size or --interval";
  return Counted(quality.lost_records, " record (", " records (") +
         Counted(quality.lost_samples, " sample)", " samples)") +
         " did not fit into the buffer" +
         (!has_waited  ? ""
          : is_bounded ? ", though the program waited as long as it may,"
                       : ", though the program waited until the profiler had stood still "
                         "for a second,") +
         (quality.lost_records == 1 ? " and is missing" : " and are missing") + advice;
}

void AddLosses(const TargetProfile& profile,
               const HeapDump& dump,
               uint64_t block_timeout_us,
               std::vector<std::string>* warnings) {
  const Quality& quality = profile.quality;
  if (quality.lost_records > 0)
    warnings->push_back(LossWarning(profile, block_timeout_us));
  if (dump.sampling_interval != dump.original_sampling_interval)
    warnings->push_back("the sampling interval was raised from " +
                        std::to_string(dump.original_sampling_interval) + " to " +
                        std::to_string(dump.sampling_interval) +
                        " bytes to keep up; start with --interval " +
                        std::to_string(dump.sampling_interval));
  if (quality.corrupt_records > 0)
    warnings->push_back(Counted(quality.corrupt_records, " record was", " records were") +
                        " damaged and left out; the program may write "
                        "outside of its own memory, which AddressSanitizer finds");
  if (quality.threads_without_slot > 0)
    warnings->push_back(
        Counted(quality.threads_without_slot, " thread was", " threads were") +
        " not recorded: more than 4096 at once");
  if (quality.reports_without_slot > 0)
    warnings->push_back(
        Counted(quality.reports_without_slot, " allocation", " allocations") +
        " in the program's own heaps could not be recorded: too "
        "many threads use too many heaps; record fewer with --heaps");
  if (quality.refused_samples > 0)
    warnings->push_back(Counted(quality.refused_samples, " sample was", " samples were") +
                        " left out: too many are live at once; record with "
                        "a larger --interval");
  if (quality.refused_dumps > 0)
    warnings->push_back(Counted(quality.refused_dumps, " dump", " dumps") +
                        " that the program asked for could not be made: more than 1000, "
                        "or together too large for all programs of its user");
  if (quality.refused_marks > 0)
    warnings->push_back(
        Counted(quality.refused_marks, " mark was", " marks were") +
        " not kept: more than 10,000 of the program, or with its dumps too much for all "
        "programs of its user");
}

void AddStacks(const Quality& quality, std::vector<std::string>* warnings) {
  if (IsMuch(quality.truncated_stacks, quality))
    warnings->push_back(Share(quality.truncated_stacks, quality.samples) +
                        " of the stacks lack their outermost frames: they are deeper "
                        "than 512 frames, or larger than what is copied of a stack");
  if (IsMuch(quality.unwind_errors, quality))
    warnings->push_back(Share(quality.unwind_errors, quality.samples) +
                        " of the stacks end early: no way was found from a function to "
                        "its caller; code built with -fasynchronous-unwind-tables has "
                        "what is needed");
  if (quality.agreed_samples < quality.checked_samples)
    warnings->push_back(std::to_string(quality.checked_samples - quality.agreed_samples) +
                        " of " + std::to_string(quality.checked_samples) +
                        " checked stacks disagreed with a full unwind");
}

// What is on a file system that answers late, or that somebody else serves.
void AddLateFiles(const TargetProfile& profile, std::vector<std::string>* warnings) {
  constexpr size_t kNamed = 3;
  const std::vector<std::string>& files = profile.late_files;
  if (files.empty())
    return;
  std::string names;
  for (size_t i = 0; i < std::min(files.size(), kNamed); ++i)
    names += (i == 0 ? "" : ", ") + Printable(files[i]);
  if (files.size() > kNamed)
    names += ", ...";
  warnings->push_back(
      std::to_string(files.size()) +
      (files.size() == 1 ? " mapped file" : " mapped files") + " did not open in time (" +
      names +
      "): stacks through code of theirs may end early or lack names; record again when "
      "the file system answers");
}

// Live memory is less than what the process holds: this is not the profiler's error.
std::string AttachedWarning(const ProcessResult& process) {
  const double live = LiveTotal(process.profile->heaps[0]).bytes;
  const std::string resident =
      process.resident_kib == 0
          ? ""
          : " beside RSS " +
                FormatBytes(static_cast<double>(process.resident_kib) * 1024);
  return "attached while it ran: what it had allocated before is not seen (live " +
         FormatBytes(live) + resident + ")";
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

bool IsIncomplete(const Quality& quality) {
  return quality.lost_records > 0 || quality.corrupt_records > 0 ||
         quality.refused_samples > 0 || quality.threads_without_slot > 0 ||
         quality.reports_without_slot > 0;
}

std::vector<std::string> QualityWarnings(const ProcessResult& process,
                                         uint64_t block_timeout_us) {
  std::vector<std::string> warnings;
  const TargetProfile& profile = *process.profile;
  if (profile.heaps.empty())
    return warnings;
  if (!profile.from_startup)
    warnings.push_back(AttachedWarning(process));
  AddLosses(profile, profile.heaps[0], block_timeout_us, &warnings);
  AddStacks(profile.quality, &warnings);
  AddLateFiles(profile, &warnings);
  if (std::optional<std::string> advice = UnnamedAdvice(process))
    warnings.push_back(std::move(*advice));
  return warnings;
}

namespace {

void AddSilent(const std::vector<ProcessResult>& processes,
               std::vector<std::string>* warnings) {
  constexpr size_t kMaxNames = 3;
  std::string names;
  size_t count = 0;
  bool may_be_static = false;  // seen from their first allocation on, and none came
  for (size_t i = 1; i < processes.size(); ++i) {
    const TargetProfile& profile = *processes[i].profile;
    if (!HoldsMemoryOfItsOwn(profile))
      continue;
    may_be_static |= profile.from_startup;
    if (++count <= kMaxNames)
      names += (names.empty() ? "" : ", ") + ProcessName(profile);
  }
  if (count > 0)
    warnings->push_back(
        Counted(count, " process has", " processes have") +
        " memory, but called no allocation function that can be seen: " + names +
        "; they allocated nothing meanwhile, or keep pools of their own" +
        (may_be_static ? ", or have an allocator linked statically" : ""));
}

}  // namespace

std::vector<std::string> WarningsOfOthers(const std::vector<ProcessResult>& processes) {
  std::vector<std::string> warnings;
  uint64_t lost = 0;
  uint64_t damaged = 0;
  size_t attached = 0;
  uint64_t uncounted = 0;  // forked children of all processes
  for (const ProcessResult& process : processes)
    uncounted += process.profile->forked.uncounted;
  for (size_t i = 1; i < processes.size(); ++i) {
    const TargetProfile& profile = *processes[i].profile;
    attached += profile.from_startup ? 0u : 1u;
    lost += profile.quality.lost_records;
    damaged += profile.quality.corrupt_records;
  }
  if (attached > 0)
    warnings.push_back(Counted(attached, " other process was", " other processes were") +
                       " attached to while running: what was allocated before is not "
                       "seen");
  if (uncounted > 0)
    warnings.push_back(Counted(uncounted, " forked child was", " forked children were") +
                       " not even counted: more than 4096 were "
                       "there at once");
  if (lost > 0)
    warnings.push_back(Counted(lost, " record", " records") + " of the other processes " +
                       (lost == 1 ? "is" : "are") +
                       " missing; raise --shmem-size "
                       "or --interval");
  if (damaged > 0)
    warnings.push_back(Counted(damaged, " record", " records") +
                       " of the other processes " + (damaged == 1 ? "was" : "were") +
                       " damaged and left out");
  AddSilent(processes, &warnings);
  return warnings;
}

}  // namespace heapprofd
